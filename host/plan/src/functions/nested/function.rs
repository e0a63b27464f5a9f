//! One scalar function over nested values, described by three plain functions.
//!
//! Planning asks `coerce` (what the arguments are cast to) and `result` (the type that comes out), every batch asks
//! `run`. The rule: `run` sees arrays of one length whose types are what `coerce` answered, and gives an array of the
//! type that `result` answered. Rows with null arguments are seen too.
//! It does not look at rows itself.

use super::coercion::check_count;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What a function is asked with.
pub(super) struct Call<'a> {
    /// The name, for messages.
    pub(super) name: &'a str,
    /// Whether ANSI mode is on.
    pub(super) ansi: bool,
    /// Rows in the batch.
    pub(super) rows: usize,
    /// The type of the result.
    pub(super) output: &'a DataType,
}

/// From name, argument types and ANSI mode to the types that the arguments are cast to.
pub(super) type Coerce = fn(&str, &[DataType], bool) -> Result<Vec<DataType>>;

/// From name, coerced types and the constants among the arguments to the type of the result.
pub(super) type Outcome = fn(&str, &[DataType], &[Option<&ScalarValue>]) -> Result<DataType>;

/// A function's description.
#[derive(Clone, Copy)]
pub(super) struct Definition {
    /// The name in SQL.
    pub(super) name: &'static str,
    /// Other names.
    pub(super) aliases: &'static [&'static str],
    /// How many arguments it takes.
    pub(super) arguments: (usize, usize),
    /// The types that the arguments are cast to: name, types, ANSI mode.
    pub(super) coerce: Coerce,
    /// The type of the result, from the coerced types and the constants among the arguments.
    pub(super) result: Outcome,
    /// Whether the result may be null although no argument can be.
    pub(super) may_be_null: bool,
    /// Whether the result is never null, whatever the arguments are.
    pub(super) never_null: bool,
    /// The work.
    pub(super) run: fn(&Call<'_>, &[ArrayRef]) -> Result<ArrayRef>,
}

/// Makes the function that a definition describes.
pub(super) fn function(definition: Definition, ansi: bool) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(NestedFunction {
        definition,
        ansi,
        aliases: definition.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

struct NestedFunction {
    definition: Definition,
    ansi: bool,
    aliases: Vec<String>,
    signature: Signature,
}

impl std::fmt::Debug for NestedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedFunction").field("name", &self.definition.name).field("ansi", &self.ansi).finish()
    }
}

impl PartialEq for NestedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name && self.ansi == other.ansi
    }
}

impl Eq for NestedFunction {}

impl Hash for NestedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
        self.ansi.hash(state);
    }
}

impl ScalarUDFImpl for NestedFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.definition.name;
        check_count(name, arg_types, self.definition.arguments)?;
        (self.definition.coerce)(name, arg_types, self.ansi)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        (self.definition.result)(self.definition.name, arg_types, &vec![None; arg_types.len()])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let output = (self.definition.result)(self.definition.name, &types, args.scalar_arguments)?;
        let nullable = !self.definition.never_null
            && (self.definition.may_be_null || args.arg_fields.iter().any(|field| field.is_nullable()));
        Ok(Arc::new(Field::new(self.definition.name, output, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let output = args.return_field.data_type();
        let call = Call { name: self.definition.name, ansi: self.ansi, rows, output };
        let result = (self.definition.run)(&call, &arrays)?;
        debug_assert_eq!(result.len(), rows, "{} answers every row", self.definition.name);
        Ok(ColumnarValue::Array(result))
    }
}
