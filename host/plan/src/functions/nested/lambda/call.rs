//! One function that takes lambdas, described by plain functions; the counterpart of `function` for scalar functions.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda, Volatility,
};

/// An argument's type while planning: a value's, or what a lambda gives, if known.
pub(super) type Shape = ValueOrLambda<FieldRef, Option<FieldRef>>;

/// What a function with lambdas is asked with.
pub(super) struct LambdaCall {
    /// The name, for messages.
    pub(super) name: &'static str,
    /// The value arguments, in order.
    pub(super) values: Vec<ArrayRef>,
    /// The lambdas, in order, each with the type that it gives.
    pub(super) lambdas: Vec<(LambdaArgument, DataType)>,
    /// Rows in the batch.
    pub(super) rows: usize,
    /// The type of the result.
    pub(super) output: DataType,
}

/// From the types of the values to those of the parameters of each lambda that there can be.
pub(super) type FindParameters = fn(&Definition, &[DataType]) -> Result<Vec<Vec<DataType>>>;

/// A function's description.
#[derive(Clone, Copy)]
pub(super) struct Definition {
    /// The name in SQL.
    pub(super) name: &'static str,
    /// Other names.
    pub(super) aliases: &'static [&'static str],
    /// How many values it takes, and then how many lambdas.
    pub(super) values: usize,
    /// The least and the most lambdas.
    pub(super) lambdas: (usize, usize),
    /// The types that the values are cast to.
    pub(super) coerce: fn(&str, &[DataType], bool) -> Result<Vec<DataType>>,
    /// The parameters of each lambda that it can have, from the types of the values.
    pub(super) parameters: FindParameters,
    /// The type of the result, from the types of the values and of what the lambdas give.
    pub(super) result: fn(&str, &[DataType], &[DataType], bool) -> Result<DataType>,
    /// Whether the result may be null although no argument can be.
    pub(super) may_be_null: bool,
    /// The work.
    pub(super) run: fn(&LambdaCall) -> Result<ArrayRef>,
}

/// Makes the function that a definition describes.
pub(super) fn function(definition: Definition, ansi: bool) -> Arc<HigherOrderUDF> {
    Arc::new(HigherOrderUDF::new_from_impl(LambdaFunction {
        definition,
        ansi,
        aliases: definition.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        signature: HigherOrderSignature::user_defined(Volatility::Immutable),
    }))
}

struct LambdaFunction {
    definition: Definition,
    ansi: bool,
    aliases: Vec<String>,
    signature: HigherOrderSignature,
}

impl std::fmt::Debug for LambdaFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LambdaFunction").field("name", &self.definition.name).field("ansi", &self.ansi).finish()
    }
}

impl PartialEq for LambdaFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name && self.ansi == other.ansi
    }
}

impl Eq for LambdaFunction {}

impl Hash for LambdaFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
        self.ansi.hash(state);
    }
}

impl LambdaFunction {
    /// Values first, then lambdas: the order that all these functions have.
    fn split<V, L>(&self, arguments: impl IntoIterator<Item = ValueOrLambda<V, L>>) -> Result<(Vec<V>, Vec<L>)> {
        let Definition { name, values: wanted, lambdas: (least, most), .. } = self.definition;
        let (mut values, mut lambdas) = (Vec::new(), Vec::new());
        let mut ordered = true;
        for argument in arguments {
            match argument {
                ValueOrLambda::Value(value) => {
                    ordered &= lambdas.is_empty();
                    values.push(value);
                }
                ValueOrLambda::Lambda(lambda) => lambdas.push(lambda),
            }
        }
        if !ordered || values.len() != wanted || !(least..=most).contains(&lambdas.len()) {
            return plan_err!(
                "[WRONG_NUM_ARGS] `{name}` takes {wanted} values and then {least} to {most} lambdas, not {} and {}",
                values.len(),
                lambdas.len()
            );
        }
        Ok((values, lambdas))
    }
}

impl HigherOrderUDFImpl for LambdaFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let Definition { name, values, .. } = self.definition;
        if arg_types.len() != values {
            return plan_err!(
                "[WRONG_NUM_ARGS] `{name}` takes {values} values beside its lambdas, not {}",
                arg_types.len()
            );
        }
        (self.definition.coerce)(name, arg_types, self.ansi)
    }

    fn lambda_parameters(&self, _step: usize, fields: &[Shape]) -> Result<LambdaParametersProgress> {
        let (values, lambdas) = self.split(fields.iter().cloned())?;
        let values: Vec<_> = values.iter().map(|field| field.data_type().clone()).collect();
        let named = |types: Vec<DataType>| -> Vec<FieldRef> {
            types.into_iter().map(|data_type| Arc::new(Field::new("", data_type, true))).collect()
        };
        let all = (self.definition.parameters)(&self.definition, &values)?;
        Ok(LambdaParametersProgress::Complete(all.into_iter().take(lambdas.len()).map(named).collect()))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        let (values, lambdas) = self.split(args.arg_fields.iter().cloned())?;
        let nullable = self.definition.may_be_null || values.iter().any(|field| field.is_nullable());
        let types = |fields: &[FieldRef]| fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        let output = (self.definition.result)(self.definition.name, &types(&values), &types(&lambdas), self.ansi)?;
        Ok(Arc::new(Field::new(self.definition.name, output, nullable)))
    }

    fn clear_null_values(&self) -> bool {
        // Null rows are skipped by whoever reads the ranges.
        false
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let output = args.return_field.data_type().clone();
        let (_, types) = self.split(args.arg_fields)?;
        let (values, lambdas) = self.split(args.args)?;
        let call = LambdaCall {
            name: self.definition.name,
            values: values.into_iter().map(|value| value.to_array(rows)).collect::<Result<_>>()?,
            lambdas: lambdas.into_iter().zip(types.iter().map(|field| field.data_type().clone())).collect(),
            rows,
            output,
        };
        let result = (self.definition.run)(&call)?;
        if result.len() != rows {
            return exec_err!("`{}` answered {} rows of {rows}", call.name, result.len());
        }
        Ok(ColumnarValue::Array(result))
    }
}
