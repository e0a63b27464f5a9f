//! The questions that can be put to a registry.

use super::address::RegistryAddress;
use super::error::RegistryError;
use super::exchange::{Answer, ask};
use super::schema::{Reference, Schema, SchemaKind, Subject, Version};
use crate::database::Driver;
use millstream_common::StopSignal;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many schemas are remembered; beyond that all are forgotten and asked for anew.
const REMEMBERED: usize = 4_096;

/// A registry, and the schemas that it has given.
///
/// Every method waits for the answer in the thread that asks, whatever that thread is; see
/// [the module](crate::schema_registry).
#[derive(Debug)]
pub struct SchemaRegistry {
    address: RegistryAddress,
    schemas: Mutex<HashMap<u32, Arc<Schema>>>,
}

impl SchemaRegistry {
    /// The registry at an address. Nothing is asked yet.
    pub fn new(address: RegistryAddress) -> Self {
        Self { address, schemas: Mutex::default() }
    }

    /// Where it is, as it may be shown.
    pub fn place(&self) -> &str {
        self.address.place()
    }

    /// The schema of a number; asked for once.
    ///
    /// # Errors
    /// [`RegistryError::UnknownId`] when there is none; other errors when it cannot be asked.
    pub fn schema(&self, id: u32) -> Result<Arc<Schema>, RegistryError> {
        if let Some(schema) = self.remembered().get(&id) {
            return Ok(Arc::clone(schema));
        }
        let answer = self.ask(&["schemas", "ids", &id.to_string()], None)?;
        let schema = match answer.status {
            200 => self.schema_in(&answer.body)?,
            404 => return Err(RegistryError::UnknownId { place: self.place().to_owned(), id }),
            _ => return Err(self.refusal(&answer)),
        };
        self.remember(id, &schema);
        Ok(schema)
    }

    /// A version of a subject.
    ///
    /// # Errors
    /// [`RegistryError::UnknownVersion`] when there is none; other errors when it cannot be asked.
    pub fn version(&self, subject: &str, version: Version) -> Result<Subject, RegistryError> {
        self.name(subject)?;
        let answer = self.ask(&["subjects", subject, "versions", &version.to_string()], None)?;
        match answer.status {
            200 => self.subject_in(&answer.body),
            404 => Err(RegistryError::UnknownVersion {
                place: self.place().to_owned(),
                subject: subject.to_owned(),
                version: version.to_string(),
            }),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// The version of a subject that has this schema; `None` when none has.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn find(&self, subject: &str, schema: &Schema) -> Result<Option<u32>, RegistryError> {
        self.name(subject)?;
        let answer = self.ask(&["subjects", subject], Some(question(schema)))?;
        match answer.status {
            200 => self.number(&answer.body, "id").map(Some),
            404 => Ok(None),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// Makes a schema the newest version of a subject, if it is not one of its versions already; answers its number.
    ///
    /// # Errors
    /// [`RegistryError::Incompatible`] when the subject does not take it; other errors when it cannot be asked.
    pub fn register(&self, subject: &str, schema: &Schema) -> Result<u32, RegistryError> {
        self.name(subject)?;
        let answer = self.ask(&["subjects", subject, "versions"], Some(question(schema)))?;
        match answer.status {
            200 => self.number(&answer.body, "id"),
            409 => Err(RegistryError::Incompatible {
                place: self.place().to_owned(),
                subject: subject.to_owned(),
                message: answer.message(),
            }),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// Waits in a thread of its own: the one that asks may be one on which nobody may wait.
    fn ask(&self, path: &[&str], body: Option<Value>) -> Result<Answer, RegistryError> {
        let broken = |source: Box<dyn std::error::Error + Send + Sync>| RegistryError::Unreachable {
            place: self.place().to_owned(),
            source,
        };
        std::thread::scope(|scope| {
            let asking = std::thread::Builder::new().name("schema-registry".to_owned()).spawn_scoped(scope, || {
                // Functions know no wish to stop; the address limits how long an answer may take.
                let driver = Driver::new(&StopSignal::new()).map_err(|error| broken(error.into()))?;
                driver
                    .wait(None, ask(&self.address, path, body.as_ref()))
                    .unwrap_or_else(|_| Err(broken("the question was given up".into())))
            });
            match asking.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(broken("the thread that asked has died".into())),
                Err(error) => Err(broken(error.into())),
            }
        })
    }

    /// Names that a path cannot have.
    fn name(&self, subject: &str) -> Result<(), RegistryError> {
        if matches!(subject, "" | "." | "..") {
            return Err(RegistryError::UnknownVersion {
                place: self.place().to_owned(),
                subject: subject.to_owned(),
                version: Version::Latest.to_string(),
            });
        }
        Ok(())
    }

    fn refusal(&self, answer: &Answer) -> RegistryError {
        let place = self.place().to_owned();
        if answer.body.is_null() {
            let reason = format!("status {}, without JSON", answer.status);
            return RegistryError::NoRegistry { place, reason };
        }
        let message = match answer.code() {
            0 => answer.message(),
            code => format!("{} (error {code})", answer.message()),
        };
        RegistryError::Refused { place, status: answer.status, message }
    }

    fn subject_in(&self, body: &Value) -> Result<Subject, RegistryError> {
        let (id, version) = (self.number(body, "id")?, self.number(body, "version")?);
        let schema = self.schema_in(body)?;
        self.remember(id, &schema);
        Ok(Subject { id, version, schema })
    }

    fn schema_in(&self, body: &Value) -> Result<Arc<Schema>, RegistryError> {
        let text = body.get("schema").and_then(Value::as_str).ok_or_else(|| self.lacks("schema"))?;
        let references = match body.get("references") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(references)) => {
                references.iter().map(|reference| self.reference_in(reference)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(self.lacks("references")),
        };
        let kind = SchemaKind::named(body.get("schemaType").and_then(Value::as_str));
        Ok(Arc::new(Schema { kind, text: text.to_owned(), references }))
    }

    fn reference_in(&self, body: &Value) -> Result<Reference, RegistryError> {
        let text = |key: &str| {
            body.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| self.lacks("references"))
        };
        Ok(Reference { name: text("name")?, subject: text("subject")?, version: self.number(body, "version")? })
    }

    fn number(&self, body: &Value, key: &str) -> Result<u32, RegistryError> {
        let number = body.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.lacks(key))
    }

    fn lacks(&self, key: &str) -> RegistryError {
        let reason = format!("its answer has no `{key}` as registries give it");
        RegistryError::NoRegistry { place: self.place().to_owned(), reason }
    }

    fn remember(&self, id: u32, schema: &Arc<Schema>) {
        let mut remembered = self.remembered();
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        remembered.insert(id, Arc::clone(schema));
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Schema>>> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A schema in the form that registries take.
fn question(schema: &Schema) -> Value {
    let mut body = Map::from_iter([("schema".to_owned(), json!(schema.text))]);
    if schema.kind != SchemaKind::Avro {
        body.insert("schemaType".to_owned(), json!(schema.kind.name()));
    }
    if !schema.references.is_empty() {
        let references = schema.references.iter().map(
            |reference| json!({"name": reference.name, "subject": reference.subject, "version": reference.version}),
        );
        body.insert("references".to_owned(), references.collect());
    }
    Value::Object(body)
}
