//! One name for texts and arrays: `concat` and `reverse`.
//!
//! Spark decides by the arguments' types; so does this function, which hands each call to the one or the other.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function that is `lists` when an argument is an array, and `others` else; it has the name of `others`.
pub(super) fn overloaded(others: Arc<ScalarUDF>, lists: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Overloaded {
        others,
        lists,
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq)]
struct Overloaded {
    others: Arc<ScalarUDF>,
    lists: Arc<ScalarUDF>,
    signature: Signature,
}

impl Hash for Overloaded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.others.hash(state);
        self.lists.hash(state);
    }
}

impl Overloaded {
    fn chosen<'a>(&self, mut types: impl Iterator<Item = &'a DataType>) -> &Arc<ScalarUDF> {
        if types.any(|data_type| matches!(data_type, DataType::List(_))) { &self.lists } else { &self.others }
    }
}

impl ScalarUDFImpl for Overloaded {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let chosen = self.chosen(arg_types.iter());
        if matches!(chosen.signature().type_signature, datafusion::logical_expr::TypeSignature::UserDefined) {
            return chosen.coerce_types(arg_types);
        }
        let fields: Vec<FieldRef> =
            arg_types.iter().map(|t| Arc::new(arrow::datatypes::Field::new("", t.clone(), true))).collect();
        let fields = datafusion::logical_expr::type_coercion::functions::fields_with_udf(&fields, chosen.as_ref())?;
        Ok(fields.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.chosen(arg_types.iter()).return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.chosen(args.arg_fields.iter().map(|field| field.data_type())).return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Arc::clone(self.chosen(args.arg_fields.iter().map(|field| field.data_type()))).invoke_with_args(args)
    }
}
