//! The common shape of the aggregates: what one aggregate must say, and the adapter that says it to DataFusion.
//!
//! An aggregate is a [`Kind`]: types, state fields, accumulators. [`SparkAggregate`] gives it a name and the plumbing
//! that all of them share. The state fields of a kind describe an accumulator fully, because the engine stores
//! them between batches. Planning is not done here.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::array::RecordBatchOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::group_states::{GroupStates, Grouped, SingleGroup};

/// What one aggregate function is.
pub(super) trait Kind: Debug + Eq + Hash + Send + Sync + 'static {
    /// The types that the arguments are cast to; an error when the function does not take them.
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>>;

    /// The result type for coerced arguments.
    fn returns(&self, args: &[DataType]) -> Result<DataType>;

    /// Whether the result can be NULL.
    fn nullable(&self) -> bool {
        true
    }

    /// Name and type of the columns that hold the state.
    fn state(&self, args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>>;

    /// The columnar states, if this kind keeps them by column.
    fn columnar(&self, _args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupStates>>> {
        Ok(None)
    }

    /// The accumulator of one group.
    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.columnar(args)? {
            Some(states) => Ok(Box::new(SingleGroup::new(states))),
            None => exec_err!("aggregate `{}` has no accumulator", args.name),
        }
    }

    /// The accumulator of many groups, if there is a columnar one.
    fn groups(&self, args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupsAccumulator>>> {
        Ok(self.columnar(args)?.map(|states| Box::new(Grouped::new(states)) as _))
    }

    /// The result over no rows.
    fn empty(&self, returns: &DataType) -> Result<ScalarValue> {
        ScalarValue::try_from(returns)
    }

    /// Whether DISTINCT changes nothing about the result.
    fn ignores_distinct(&self) -> bool {
        false
    }

    /// Whether `IGNORE NULLS` may be written after the call.
    fn takes_null_treatment(&self) -> bool {
        false
    }

    /// Whether `WITHIN GROUP (ORDER BY x)` may be written after the call; `x` then becomes the first argument.
    fn takes_within_group(&self) -> bool {
        false
    }
}

/// A [`Kind`] under a name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SparkAggregate<K> {
    name: &'static str,
    signature: Signature,
    kind: K,
}

/// The function `name` of this kind.
pub(super) fn aggregate<K: Kind>(name: &'static str, kind: K) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(SparkAggregate { name, signature, kind }))
}

fn types(fields: &[FieldRef]) -> Vec<DataType> {
    fields.iter().map(|field| field.data_type().clone()).collect()
}

impl<K: Kind> SparkAggregate<K> {
    fn refuse_distinct(&self, args: &AccumulatorArgs) -> Result<()> {
        if args.is_distinct && !self.kind.ignores_distinct() {
            return plan_err!("`{}` does not take DISTINCT here", self.name);
        }
        Ok(())
    }
}

impl<K: Kind> AggregateUDFImpl for SparkAggregate<K> {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        self.kind.coerce(self.name, args)
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.kind.returns(args)
    }

    fn is_nullable(&self) -> bool {
        self.kind.nullable()
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let fields = self.kind.state(&types(args.input_fields), args.return_type())?;
        Ok(fields
            .into_iter()
            .map(|(part, data_type)| Arc::new(Field::new(format_state_name(args.name, part), data_type, true)))
            .collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.refuse_distinct(&args)?;
        self.kind.accumulator(&args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        matches!(self.kind.groups(&args), Ok(Some(_)))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.refuse_distinct(&args)?;
        match self.kind.groups(&args)? {
            Some(groups) => Ok(groups),
            None => exec_err!("aggregate `{}` has no accumulator for many groups", self.name),
        }
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.kind.empty(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.kind.takes_null_treatment()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.kind.takes_within_group()
    }
}

/// The value of the constant argument at `index`, if it is given at all.
pub(super) fn constant(args: &AccumulatorArgs, index: usize) -> Result<Option<ScalarValue>> {
    let Some(expr) = args.exprs.get(index) else { return Ok(None) };
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    let Ok(value) = expr.evaluate(&row) else {
        return plan_err!(
            "[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] argument {} of `{}` must be a constant, not `{expr}`",
            index + 1,
            args.name
        );
    };
    let array = value.into_array(1)?;
    ScalarValue::try_from_array(&array, 0).map(Some)
}

/// Refuses a wrong number of arguments.
pub(super) fn arity(name: &str, args: &[DataType], at_least: usize, at_most: usize) -> Result<()> {
    if args.len() < at_least || args.len() > at_most {
        let wanted = if at_least == at_most { at_least.to_string() } else { format!("{at_least} to {at_most}") };
        return plan_err!(
            "[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] `{name}` takes {wanted} arguments, but {} were given",
            args.len()
        );
    }
    Ok(())
}

/// Refuses an argument of the wrong type.
pub(super) fn wrong_type<T>(name: &str, index: usize, wanted: &str, found: &DataType) -> Result<T> {
    plan_err!(
        "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] argument {} of `{name}` must be {wanted}, but it is `{found}`",
        index + 1
    )
}

/// Numbers and strings as DOUBLE; anything else is refused.
pub(super) fn as_double(name: &str, index: usize, found: &DataType) -> Result<DataType> {
    match found {
        data_type if data_type.is_numeric() => Ok(DataType::Float64),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(DataType::Float64),
        other => wrong_type(name, index, "a number", other),
    }
}

/// The list type of this element.
pub(super) fn list_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

/// The type itself, without views, dictionaries and large offsets, which never reach a state.
pub(super) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => plain(values),
        other => other.clone(),
    }
}
