//! One SQL function as a row of a table: its name, what it takes, what it returns, and its columnar body.
//!
//! Where it stands: every function of text and time is a [`Function`]; `DataFusion` sees it as a `ScalarUDF`.
//! The planner asks it for coerced argument types and for the return field, a batch asks it for a column.
//!
//! Rule of its life: a body sees canonical columns only (see [`Kind`]), whatever types the query gave, and a constant
//! argument stays one value instead of being copied to every row.
//!
//! It does not know any single function's meaning.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, FieldRef, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::kind::{Kind, Rules};
use millstream_common::{BatchTime, SqlSettings};

/// The timestamp type of every function here: microseconds in UTC.
pub(crate) fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Unwraps an option inside a row's body; an absent value makes the row NULL.
macro_rules! some {
    ($value:expr) => {
        match $value {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}
pub(crate) use some;

/// The columnar body of a function.
pub(crate) type Body = fn(&Call<'_>) -> Result<ArrayRef>;
/// Return type from argument types and constant arguments.
pub(crate) type ReturnRule = fn(&[DataType], &[Option<&ScalarValue>]) -> Result<DataType>;

#[derive(Debug, Clone)]
enum Returns {
    Fixed(DataType),
    Rule(ReturnRule),
}

/// When the result may be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// Only when an argument may be.
    FromArguments,
    /// Also for arguments that are not NULL.
    Possible,
    /// Never.
    Never,
}

/// A function of SQL.
#[derive(Debug)]
pub(crate) struct Function {
    name: &'static str,
    aliases: Vec<String>,
    kinds: Vec<Kind>,
    required: usize,
    rest: Option<Kind>,
    returns: Returns,
    nulls: Nulls,
    body: Body,
    fails_on: &'static [usize],
    ansi: bool,
    batch_time: BatchTime,
    signature: Signature,
}

impl Function {
    /// A function whose arguments are all required and whose type is fixed.
    pub(crate) fn new(name: &'static str, kinds: &[Kind], returns: DataType, body: Body) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            kinds: kinds.to_vec(),
            required: kinds.len(),
            rest: None,
            returns: Returns::Fixed(returns),
            nulls: Nulls::FromArguments,
            body,
            fails_on: &[],
            ansi: true,
            batch_time: BatchTime::default(),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// Other names of the same function.
    pub(crate) fn aliases(mut self, aliases: &[&str]) -> Self {
        self.aliases = aliases.iter().map(|a| (*a).to_string()).collect();
        self
    }

    /// The last `count` arguments may be left out.
    pub(crate) fn optional(mut self, count: usize) -> Self {
        self.required = self.kinds.len() - count;
        self
    }

    /// Any number of further arguments of this kind.
    pub(crate) fn rest(mut self, kind: Kind) -> Self {
        self.rest = Some(kind);
        self
    }

    /// The return type depends on the arguments.
    pub(crate) fn returns_by(mut self, rule: ReturnRule) -> Self {
        self.returns = Returns::Rule(rule);
        self
    }

    /// When the result may be NULL.
    pub(crate) fn nulls(mut self, nulls: Nulls) -> Self {
        self.nulls = nulls;
        self
    }

    /// The arguments whose values can make the function fail although they are of the kind it wants. A constant does not
    /// count: it fails for every row or for none.
    pub(crate) fn fails_on(mut self, arguments: &'static [usize]) -> Self {
        self.fails_on = arguments;
        self
    }

    /// The finished function under the session's settings.
    pub(crate) fn build(mut self, settings: &SqlSettings) -> Arc<ScalarUDF> {
        self.ansi = settings.ansi;
        self.batch_time = settings.batch_time.clone();
        Arc::new(ScalarUDF::new_from_impl(self))
    }

    /// Whether some row could make a call with these arguments fail: when one becomes the kind it is wanted as, or on its
    /// value.
    pub(crate) fn can_fail(&self, args: &[Expr], schema: &DFSchema) -> bool {
        args.iter().enumerate().any(|(index, arg)| {
            let Some(kind) = self.kind_of(index) else { return true };
            match arg {
                Expr::Literal(value, _) => {
                    let rules = Rules { ansi: true, today: 0 };
                    value.to_array().is_ok_and(|value| kind.canonical(&value, rules).is_err())
                }
                _ => {
                    let given = arg.get_type(schema);
                    self.fails_on.contains(&index) || given.map_or(true, |given| kind.may_fail_on(&given))
                }
            }
        })
    }

    fn rules(&self) -> Rules {
        Rules { ansi: self.ansi, today: self.batch_time.get_ms().div_euclid(86_400_000) }
    }

    fn kind_of(&self, index: usize) -> Option<Kind> {
        self.kinds.get(index).copied().or(self.rest)
    }

    fn type_of(&self, types: &[DataType], scalars: &[Option<&ScalarValue>]) -> Result<DataType> {
        match &self.returns {
            Returns::Fixed(data_type) => Ok(data_type.clone()),
            Returns::Rule(rule) => rule(types, scalars),
        }
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.ansi == other.ansi
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.ansi.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let most = if self.rest.is_some() { usize::MAX } else { self.kinds.len() };
        if types.len() < self.required || types.len() > most {
            let expected = match (self.required, most) {
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} to {most}"),
            };
            return plan_err!(
                "[WRONG_NUM_ARGS] the function `{}` takes {expected} arguments, not {}",
                self.name,
                types.len()
            );
        }
        let mut coerced = Vec::with_capacity(types.len());
        for (index, data_type) in types.iter().enumerate() {
            let Some(wanted) = self.kind_of(index).and_then(|kind| kind.coerce(data_type)) else {
                return plan_err!(
                    "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] argument {} of `{}` cannot be of type {data_type}",
                    index + 1,
                    self.name
                );
            };
            coerced.push(wanted);
        }
        Ok(coerced)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.type_of(types, &vec![None; types.len()])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = match self.nulls {
            Nulls::Never => false,
            Nulls::Possible => true,
            // Without ANSI mode a value that cannot be cast to the argument's kind is NULL.
            Nulls::FromArguments => {
                args.arg_fields.iter().any(|f| f.is_nullable())
                    || (!self.ansi && (0..types.len()).any(|i| self.kind_of(i).is_some_and(Kind::may_fail)))
            }
        };
        Ok(Arc::new(Field::new(self.name, self.type_of(&types, args.scalar_arguments)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let mut columns = Vec::with_capacity(args.args.len());
        for (index, value) in args.args.iter().enumerate() {
            let Some(kind) = self.kind_of(index) else {
                return exec_err!("[WRONG_NUM_ARGS] the function `{}` got too many arguments", self.name);
            };
            let (array, stride) = match value {
                ColumnarValue::Array(array) => (Arc::clone(array), 1),
                ColumnarValue::Scalar(scalar) => (scalar.to_array()?, 0),
            };
            columns.push((kind.canonical(&array, self.rules())?, stride));
        }
        let returns = args.return_field.data_type();
        let call = Call { name: self.name, columns, rows, ansi: self.ansi, today: self.rules().today, returns };
        let result = (self.body)(&call)?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// The arguments of one invocation, canonical.
pub(crate) struct Call<'a> {
    /// The function's name, for messages.
    pub(crate) name: &'static str,
    columns: Vec<(ArrayRef, usize)>,
    /// Rows to produce.
    pub(crate) rows: usize,
    /// ANSI mode.
    pub(crate) ansi: bool,
    /// The batch's day, for times without a date.
    pub(crate) today: i64,
    /// The planned return type.
    pub(crate) returns: &'a DataType,
}

impl Call<'_> {
    /// How arguments that a body converts itself become their kind.
    pub(crate) fn rules(&self) -> Rules {
        Rules { ansi: self.ansi, today: self.today }
    }

    /// Number of arguments given.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether argument `index` was given.
    pub(crate) fn has(&self, index: usize) -> bool {
        index < self.columns.len()
    }

    /// Argument `index` as it is, with its stride (0 for a constant).
    pub(crate) fn raw(&self, index: usize) -> (&ArrayRef, usize) {
        let (array, stride) = &self.columns[index];
        (array, *stride)
    }

    fn column<'c, A>(&'c self, index: usize, cast: fn(&'c ArrayRef) -> Option<&'c A>) -> Result<Column<'c, A>> {
        let (array, stride) = &self.columns[index];
        match cast(array) {
            Some(array) => Ok(Column { array, stride: *stride }),
            None => {
                exec_err!("argument {} of `{}` has the unexpected type {}", index + 1, self.name, array.data_type())
            }
        }
    }

    /// A STRING argument.
    pub(crate) fn text(&self, index: usize) -> Result<Column<'_, StringArray>> {
        self.column(index, |a| a.as_string_opt::<i32>())
    }

    /// A BINARY argument.
    pub(crate) fn bytes(&self, index: usize) -> Result<Column<'_, BinaryArray>> {
        self.column(index, |a| a.as_binary_opt::<i32>())
    }

    /// A BOOLEAN argument.
    pub(crate) fn bool(&self, index: usize) -> Result<Column<'_, BooleanArray>> {
        self.column(index, |a| a.as_boolean_opt())
    }

    /// An INT argument.
    pub(crate) fn int(&self, index: usize) -> Result<Column<'_, PrimitiveArray<Int32Type>>> {
        self.column(index, |a| a.as_primitive_opt())
    }

    /// A BIGINT argument.
    pub(crate) fn long(&self, index: usize) -> Result<Column<'_, PrimitiveArray<Int64Type>>> {
        self.column(index, |a| a.as_primitive_opt())
    }

    /// A DATE argument, as days since 1970-01-01.
    pub(crate) fn date(&self, index: usize) -> Result<Column<'_, PrimitiveArray<Date32Type>>> {
        self.column(index, |a| a.as_primitive_opt())
    }

    /// A TIMESTAMP argument, as microseconds since 1970-01-01 in UTC.
    pub(crate) fn timestamp(&self, index: usize) -> Result<Column<'_, PrimitiveArray<TimestampMicrosecondType>>> {
        self.column(index, |a| a.as_primitive_opt())
    }

    /// Whether argument `index` is BINARY.
    pub(crate) fn is_bytes(&self, index: usize) -> bool {
        self.columns[index].0.data_type() == &DataType::Binary
    }
}

/// One argument: a column, or one value standing for every row.
pub(crate) struct Column<'a, A> {
    array: &'a A,
    stride: usize,
}

/// A row's value of a column.
macro_rules! get {
    ($array:ty, $value:ty) => {
        impl<'a> Column<'a, $array> {
            /// The value of `row`, `None` for NULL.
            pub(crate) fn get(&self, row: usize) -> Option<$value> {
                use arrow::array::Array as _;
                let index = row * self.stride;
                if self.array.is_null(index) { None } else { Some(self.array.value(index)) }
            }
        }
    };
}
get!(StringArray, &'a str);
get!(BinaryArray, &'a [u8]);
get!(BooleanArray, bool);

impl<P: ArrowPrimitiveType> Column<'_, PrimitiveArray<P>> {
    /// The value of `row`, `None` for NULL.
    pub(crate) fn get(&self, row: usize) -> Option<P::Native> {
        use arrow::array::Array as _;
        let index = row * self.stride;
        if self.array.is_null(index) { None } else { Some(self.array.value(index)) }
    }
}
