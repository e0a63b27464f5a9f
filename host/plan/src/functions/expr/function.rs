//! The one shape of this folder's ordinary functions: a row of function pointers.
//!
//! A family (mathematics, rounding, bits, …) lists its functions as [`Row`]s; [`SparkFunction`] makes each a scalar
//! function of DataFusion. Functions that need more (casts, arithmetic, the clock) implement the trait themselves.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::type_name::shown_type;

/// When a result can be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// When an argument is.
    FromArguments,
    /// Always possible.
    Possible,
    /// Never.
    Never,
    /// Only when every argument is.
    WhenAllAre,
}

/// The arguments' values of one call, brought to arrays of equal length (1 when all are constants).
pub(crate) struct Call<'a> {
    pub(crate) arrays: &'a [ArrayRef],
    pub(crate) ansi: bool,
    pub(crate) result: &'a DataType,
}

type Coerce = fn(&[DataType], bool) -> Option<Vec<DataType>>;
type Returns = fn(&[DataType], &[Option<&ScalarValue>]) -> Result<DataType>;
type Evaluate = fn(&Call<'_>) -> Result<ArrayRef>;

/// One function.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The types that the arguments are brought to; `None` refuses them.
    pub(crate) coerce: Coerce,
    pub(crate) returns: Returns,
    pub(crate) nulls: Nulls,
    pub(crate) evaluate: Evaluate,
    pub(crate) volatility: Volatility,
}

impl Row {
    /// A function of immutable meaning whose result is NULL when an argument is.
    pub(crate) const fn new(name: &'static str, coerce: Coerce, returns: Returns, evaluate: Evaluate) -> Self {
        let (aliases, nulls, volatility) = (&[], Nulls::FromArguments, Volatility::Immutable);
        Self { name, aliases, coerce, returns, nulls, evaluate, volatility }
    }

    pub(crate) const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn nulls(mut self, nulls: Nulls) -> Self {
        self.nulls = nulls;
        self
    }

    pub(crate) const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }
}

/// A [`Row`] as a scalar function.
pub(crate) struct SparkFunction {
    row: Row,
    aliases: Vec<String>,
    ansi: bool,
    signature: Signature,
}

impl SparkFunction {
    /// The function under the session's settings.
    pub(crate) fn udf(row: Row, ansi: bool) -> Arc<ScalarUDF> {
        let aliases = row.aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = if (row.coerce)(&[], ansi).is_some() {
            Signature::nullary(row.volatility)
        } else {
            Signature::user_defined(row.volatility)
        };
        Arc::new(ScalarUDF::new_from_impl(Self { row, aliases, ansi, signature }))
    }
}

impl std::fmt::Debug for SparkFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparkFunction").field("name", &self.row.name).field("ansi", &self.ansi).finish()
    }
}

impl PartialEq for SparkFunction {
    fn eq(&self, other: &Self) -> bool {
        (self.row.name, self.ansi) == (other.row.name, other.ansi)
    }
}

impl Eq for SparkFunction {}

impl Hash for SparkFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.row.name, self.ansi).hash(state);
    }
}

impl ScalarUDFImpl for SparkFunction {
    fn name(&self) -> &str {
        self.row.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.row.coerce)(arg_types, self.ansi) {
            Some(types) => Ok(types),
            None => {
                let shown: Vec<String> = arg_types.iter().map(shown_type).collect();
                plan_err!(
                    "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] `{}` does not take ({})",
                    self.row.name,
                    shown.join(", ")
                )
            }
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        (self.row.returns)(arg_types, &vec![None; arg_types.len()])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let result = (self.row.returns)(&types, args.scalar_arguments)?;
        let mut nullable = args.arg_fields.iter().map(|field| field.is_nullable());
        let nullable = match self.row.nulls {
            Nulls::FromArguments => nullable.any(|n| n),
            Nulls::WhenAllAre => nullable.all(|n| n),
            Nulls::Possible => true,
            Nulls::Never => false,
        };
        Ok(Arc::new(Field::new(self.row.name, result, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let call = Call { arrays: &arrays, ansi: self.ansi, result: args.return_field.data_type() };
        let result = (self.row.evaluate)(&call)?;
        if constant && result.len() == 1 {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?))
        } else {
            Ok(ColumnarValue::Array(result))
        }
    }
}

/// Coercions and result types that many functions share.
pub(crate) mod shape {
    use super::super::common_type::{digits, is_string};
    use super::{DataType, Result, ScalarValue};

    /// Whether a value of the type may stand where a number is asked for.
    pub(crate) fn number_like(data_type: &DataType) -> bool {
        data_type.is_numeric() || data_type.is_null() || is_string(data_type)
    }

    /// Every argument a DOUBLE.
    pub(crate) fn doubles(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
        types.iter().map(|t| number_like(t).then_some(DataType::Float64)).collect()
    }

    /// One DOUBLE.
    pub(crate) fn one_double(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
        (types.len() == 1).then(|| doubles(types, ansi))?
    }

    /// Two DOUBLEs.
    pub(crate) fn two_doubles(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
        (types.len() == 2).then(|| doubles(types, ansi))?
    }

    /// One number, its type kept; strings become DOUBLE.
    pub(crate) fn one_number(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
        let [one] = types else { return None };
        number_like(one).then(|| vec![kept(one)])
    }

    /// The number's own type, DOUBLE for a string or NULL.
    pub(crate) fn kept(data_type: &DataType) -> DataType {
        match data_type {
            t if t.is_numeric() && (t.is_floating() || digits(t).is_some()) => t.clone(),
            _ => DataType::Float64,
        }
    }

    /// Any one argument as it is.
    pub(crate) fn any_one(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
        (types.len() == 1).then(|| types.to_vec())
    }

    /// DOUBLE.
    pub(crate) fn double(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    /// BIGINT.
    pub(crate) fn bigint(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    /// INT.
    pub(crate) fn int(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    /// BOOLEAN.
    pub(crate) fn boolean(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    /// STRING.
    pub(crate) fn string(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    /// The first argument's type.
    pub(crate) fn first(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }
}
