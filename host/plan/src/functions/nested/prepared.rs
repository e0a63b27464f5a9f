//! One scalar function whose second and further arguments are constants, from which its work is prepared.
//!
//! Planning asks `coerce` for what the first argument is cast to and `prepare` for the work; the work knows the type of the
//! result and is what every batch runs. The rule: `prepare` runs once for the same type and the same constants, for as long
//! as the function lives, which is as long as the query does. So what it reads then (a schema, a file, a registry) is the
//! same in every batch of a run. What has failed is not remembered.
//! It does not look at rows itself.

use super::coercion::{check_count, mismatch};
use arrow::array::{Array, ArrayRef, new_empty_array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// A constant argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    /// A text; options are one too, as a JSON object.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Constant {
    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }
}

/// What a function is prepared for.
pub(super) struct Asked<'a> {
    /// The name, for messages.
    pub(super) name: &'a str,
    /// The type of the first argument, as `coerce` has answered it.
    pub(super) value: &'a DataType,
    /// The other arguments.
    pub(super) constants: &'a [Constant],
}

impl Asked<'_> {
    /// The text at a place among the constants.
    pub(super) fn text(&self, place: usize, what: &str) -> Result<&str> {
        match self.constants.get(place).map(Constant::text) {
            Some(Some(text)) => Ok(text),
            Some(None) => mismatch(self.name, what, &DataType::Binary),
            None => plan_err!("[WRONG_NUM_ARGS] `{}` is not given {what}", self.name),
        }
    }
}

/// What was prepared.
pub(super) trait Work: Send + Sync {
    /// The type of the result.
    fn output(&self) -> &DataType;

    /// Whether the result is never null, whatever the argument is.
    fn is_never_null(&self) -> bool {
        false
    }

    /// Whether the result is null only where the argument is.
    fn is_null_for_null_only(&self) -> bool {
        false
    }

    /// The results for the values of a batch, which are not none. Several threads may ask at once.
    fn run(&self, values: &ArrayRef) -> Result<ArrayRef>;
}

/// From what is known of a call to its work.
pub(super) type Prepare = fn(&Asked<'_>) -> Result<Arc<dyn Work>>;

/// A function's description.
#[derive(Clone, Copy)]
pub(super) struct PreparedDefinition {
    /// The name in SQL.
    pub(super) name: &'static str,
    /// How many arguments it takes.
    pub(super) arguments: (usize, usize),
    /// What the first argument is cast to: name, its type.
    pub(super) coerce: fn(&str, &DataType) -> Result<DataType>,
    /// Makes the work.
    pub(super) prepare: Prepare,
}

/// Makes the function that a definition describes.
pub(super) fn prepared_function(definition: PreparedDefinition) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(PreparedFunction {
        definition,
        signature: Signature::user_defined(Volatility::Immutable),
        prepared: Mutex::default(),
    }))
}

/// Whether the entries of a map are texts.
fn is_of_texts(entries: &DataType) -> bool {
    let is_text = |found: &DataType| matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    matches!(entries, DataType::Struct(fields) if fields.iter().all(|field| is_text(field.data_type())))
}

type Key = (DataType, Vec<Constant>);

struct PreparedFunction {
    definition: PreparedDefinition,
    signature: Signature,
    prepared: Mutex<HashMap<Key, Arc<dyn Work>>>,
}

impl PreparedFunction {
    /// The work for a call. Who asks while another one prepares the same waits for it.
    fn work(&self, value: &DataType, constants: Vec<Constant>) -> Result<Arc<dyn Work>> {
        let key = (value.clone(), constants);
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(work) = prepared.get(&key) {
            return Ok(Arc::clone(work));
        }
        let asked = Asked { name: self.definition.name, value, constants: &key.1 };
        let work = (self.definition.prepare)(&asked)?;
        prepared.insert(key, Arc::clone(&work));
        Ok(work)
    }

    fn constant(&self, found: Option<&ScalarValue>, data_type: &DataType) -> Result<Constant> {
        let text = found.and_then(|found| found.try_as_str().flatten()).map(|text| Constant::Text(text.to_owned()));
        let constant = text.or_else(|| match found {
            Some(
                ScalarValue::Binary(Some(bytes))
                | ScalarValue::LargeBinary(Some(bytes))
                | ScalarValue::BinaryView(Some(bytes)),
            ) => Some(Constant::Bytes(bytes.clone())),
            _ => None,
        });
        match constant {
            Some(constant) => Ok(constant),
            None => mismatch(self.definition.name, "constants behind its first argument", data_type),
        }
    }
}

impl std::fmt::Debug for PreparedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedFunction").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

impl PartialEq for PreparedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
    }
}

impl Eq for PreparedFunction {}

impl Hash for PreparedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for PreparedFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.definition.name;
        check_count(name, arg_types, self.definition.arguments)?;
        let mut coerced = vec![(self.definition.coerce)(name, &arg_types[0])?];
        for constant in &arg_types[1..] {
            coerced.push(match constant {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
                // Constant options are one text by now.
                DataType::Map(entries, _) if !is_of_texts(entries.data_type()) => {
                    return plan_err!(
                        "[INVALID_OPTIONS.NON_STRING_TYPE] the options of `{name}` are a map of texts, not {constant}"
                    );
                }
                DataType::Map(..) => return mismatch(name, "a map of constant options", constant),
                other => return mismatch(name, "constant texts behind its first argument", other),
            });
        }
        Ok(coerced)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [value] => Ok(self.work(value, Vec::new())?.output().clone()),
            [_, constant, ..] => mismatch(self.definition.name, "constants behind its first argument", constant),
            [] => plan_err!("[WRONG_NUM_ARGS] `{}` does not take 0 arguments", self.definition.name),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let constants = args.arg_fields.iter().zip(args.scalar_arguments).skip(1);
        let constants = constants.map(|(field, found)| self.constant(*found, field.data_type()));
        let work = self.work(args.arg_fields[0].data_type(), constants.collect::<Result<_>>()?)?;
        let is_nullable = !work.is_never_null() && (args.arg_fields[0].is_nullable() || !work.is_null_for_null_only());
        Ok(Arc::new(Field::new(self.definition.name, work.output().clone(), is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let output = args.return_field.data_type();
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(output)));
        }
        let constants = args.args.iter().skip(1).map(|argument| match argument {
            ColumnarValue::Scalar(found) => self.constant(Some(found), &found.data_type()),
            ColumnarValue::Array(array) => {
                self.constant(Some(&ScalarValue::try_from_array(array, 0)?), array.data_type())
            }
        });
        let constants = constants.collect::<Result<Vec<_>>>()?;
        let values = args.args[0].to_array(args.number_rows)?;
        let work = self.work(values.data_type(), constants)?;
        if work.output() != output {
            return exec_err!("`{}` was planned to give {output}, not {}", self.definition.name, work.output());
        }
        let result = work.run(&values)?;
        debug_assert_eq!(result.len(), args.number_rows, "{} answers every row", self.definition.name);
        Ok(ColumnarValue::Array(result))
    }
}
