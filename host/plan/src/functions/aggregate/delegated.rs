//! `bool_and`, `bool_or`, `bit_and`, `bit_or`, `bit_xor`: DataFusion's accumulators under Spark's names and types.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, GroupsAccumulator};

use super::definition::{Kind, arity, wrong_type};

/// A function whose accumulators are taken from DataFusion.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Delegated {
    /// `bool_and`, `every`.
    BoolAnd,
    /// `bool_or`, `some`, `any`.
    BoolOr,
    /// `bit_and`.
    BitAnd,
    /// `bit_or`.
    BitOr,
    /// `bit_xor`.
    BitXor,
}

impl Delegated {
    fn function(&self) -> Arc<AggregateUDF> {
        match self {
            Self::BoolAnd => bool_and_udaf(),
            Self::BoolOr => bool_or_udaf(),
            Self::BitAnd => bit_and_udaf(),
            Self::BitOr => bit_or_udaf(),
            Self::BitXor => bit_xor_udaf(),
        }
    }
}

impl Kind for Delegated {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 1)?;
        let booleans = matches!(self, Self::BoolAnd | Self::BoolOr);
        let coerced = match &args[0] {
            DataType::Boolean | DataType::Null if booleans => DataType::Boolean,
            other if booleans => return wrong_type(name, 0, "a BOOLEAN", other),
            DataType::Null => DataType::Int32,
            found if found.is_integer() => found.clone(),
            other => return wrong_type(name, 0, "a whole number", other),
        };
        Ok(vec![coerced])
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn state(&self, _args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("value", returns.clone())])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function().accumulator(args.clone())
    }

    fn groups(&self, args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupsAccumulator>>> {
        let function = self.function();
        if !function.groups_accumulator_supported(args.clone()) {
            return Ok(None);
        }
        function.create_groups_accumulator(args.clone()).map(Some)
    }

    fn ignores_distinct(&self) -> bool {
        *self != Self::BitXor
    }
}
