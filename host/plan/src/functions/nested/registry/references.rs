//! Schemas of Avro that use named types of other subjects.
//!
//! A schema names what it uses; its list of references says in which version of which subject each name is defined. Here
//! the definition is put in the place where the name is used first, as Avro itself wants it.

use super::failed;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use millstream_client::schema_registry::{Schema, SchemaRegistry, Version};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// How deep references may lead, and types be nested.
const DEPTH: usize = 64;
/// How many other schemas one may use.
const SCHEMAS: usize = 256;

/// The text of a schema with everything that it uses of other subjects.
///
/// # Errors
/// When another subject cannot be asked for, or its schema is none.
pub(in super::super) fn with_references(registry: &SchemaRegistry, schema: &Schema) -> Result<String> {
    if schema.references.is_empty() {
        return Ok(schema.text.clone());
    }
    let mut known = HashMap::new();
    gather(registry, schema, &mut known, DEPTH)?;
    let mut inlining = Inlining { known: &known, defined: HashSet::new() };
    Ok(inlining.inlined(&json(&schema.text)?, "", DEPTH)?.to_string())
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| exec_datafusion_err!("a schema of the registry is not JSON: {error}"))
}

/// What each name stands for, over all references.
fn gather(registry: &SchemaRegistry, schema: &Schema, known: &mut HashMap<String, Value>, depth: usize) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else { return exec_err!("references of schemas lead too far") };
    for reference in &schema.references {
        if known.contains_key(&reference.name) {
            continue;
        }
        if known.len() == SCHEMAS {
            return exec_err!("a schema uses more than {SCHEMAS} others");
        }
        let found = registry.version(&reference.subject, Version::Number(reference.version)).map_err(failed)?;
        known.insert(reference.name.clone(), json(&found.schema.text)?);
        gather(registry, &found.schema, known, depth)?;
    }
    Ok(())
}

/// Puts definitions where names are used first.
struct Inlining<'a> {
    known: &'a HashMap<String, Value>,
    defined: HashSet<String>,
}

impl Inlining<'_> {
    /// `space` is the namespace in which names are meant.
    fn inlined(&mut self, schema: &Value, space: &str, depth: usize) -> Result<Value> {
        let Some(depth) = depth.checked_sub(1) else { return exec_err!("a schema is nested too deeply") };
        Ok(match schema {
            Value::String(name) => match self.definition(name, space) {
                Some((full, definition)) => {
                    self.defined.insert(full);
                    self.inlined(&definition, "", depth)?
                }
                None => schema.clone(),
            },
            Value::Array(variants) => {
                let variants = variants.iter().map(|variant| self.inlined(variant, space, depth));
                Value::Array(variants.collect::<Result<_>>()?)
            }
            Value::Object(parts) => self.object(parts, space, depth)?,
            other => other.clone(),
        })
    }

    fn object(&mut self, parts: &Map<String, Value>, space: &str, depth: usize) -> Result<Value> {
        let space = namespace(parts).unwrap_or(space).to_owned();
        let mut parts = parts.clone();
        let is_record = matches!(parts.get("type").and_then(Value::as_str), Some("record" | "error"));
        if let Some(Value::Array(fields)) = parts.get_mut("fields").filter(|_| is_record) {
            for field in fields {
                if let Some(inner) = field.get_mut("type") {
                    *inner = self.inlined(inner, &space, depth)?;
                }
            }
        }
        for key in ["items", "values"] {
            if let Some(inner) = parts.get_mut(key) {
                *inner = self.inlined(inner, &space, depth)?;
            }
        }
        // A type inside of a type, or a name in an object of its own.
        if let Some(inner) = parts.get_mut("type").filter(|_| !is_record) {
            *inner = self.inlined(inner, &space, depth)?;
        }
        Ok(Value::Object(parts))
    }

    /// What a name stands for, when it was not defined before.
    fn definition(&self, name: &str, space: &str) -> Option<(String, Value)> {
        let full = if name.contains('.') || space.is_empty() { name.to_owned() } else { format!("{space}.{name}") };
        let (full, definition) = [full, name.to_owned()]
            .into_iter()
            .find_map(|name| self.known.get(&name).map(|definition| (name, definition)))?;
        (!self.defined.contains(&full)).then(|| (full, definition.clone()))
    }
}

/// The namespace that a definition gives to what is in it.
fn namespace(parts: &Map<String, Value>) -> Option<&str> {
    let name = parts.get("name").and_then(Value::as_str)?;
    match name.rsplit_once('.') {
        Some((space, _)) => Some(space),
        None => parts.get("namespace").and_then(Value::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_stands_where_its_name_is_used_first() {
        let money = json!({"type": "record", "name": "Money", "namespace": "shop", "fields": [
            {"name": "of", "type": "Currency"}, {"name": "cents", "type": "long"}]});
        let currency = json!({"type": "enum", "name": "Currency", "namespace": "shop", "symbols": ["EUR"]});
        let known =
            HashMap::from([("shop.Money".to_owned(), money.clone()), ("shop.Currency".to_owned(), currency.clone())]);
        let order = json!({"type": "record", "name": "shop.Order", "fields": [
            {"name": "price", "type": "Money"},
            {"name": "tips", "type": {"type": "array", "items": "shop.Money"}},
            {"name": "note", "type": ["null", "string"]}]});
        let mut inlining = Inlining { known: &known, defined: HashSet::new() };
        let mut whole = money;
        whole["fields"][0]["type"] = currency;
        let expected = json!({"type": "record", "name": "shop.Order", "fields": [
            {"name": "price", "type": whole},
            {"name": "tips", "type": {"type": "array", "items": "shop.Money"}},
            {"name": "note", "type": ["null", "string"]}]});
        assert_eq!(inlining.inlined(&order, "", DEPTH).unwrap(), expected);
    }
}
