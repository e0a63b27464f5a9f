//! Values of the program as columns: what `lit` takes, and what may stand on the right of an operator.

use super::column::Column;
use datafusion::sql::sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value};

/// A value that can stand beside an operator: a column, or a literal. A `&str` is a text here, not SQL.
pub trait IntoOperand {
    /// The column that stands for it.
    fn into_operand(self) -> Column;
}

impl IntoOperand for Column {
    fn into_operand(self) -> Column {
        self
    }
}

impl IntoOperand for &Column {
    fn into_operand(self) -> Column {
        self.clone()
    }
}

impl IntoOperand for &str {
    fn into_operand(self) -> Column {
        literal(Value::SingleQuotedString(escaped(self)))
    }
}

impl IntoOperand for String {
    fn into_operand(self) -> Column {
        self.as_str().into_operand()
    }
}

impl IntoOperand for &String {
    fn into_operand(self) -> Column {
        self.as_str().into_operand()
    }
}

impl IntoOperand for bool {
    fn into_operand(self) -> Column {
        literal(Value::Boolean(self))
    }
}

impl IntoOperand for i32 {
    fn into_operand(self) -> Column {
        number(self < 0, self.unsigned_abs().to_string(), false)
    }
}

impl IntoOperand for i64 {
    fn into_operand(self) -> Column {
        if self == i64::MIN {
            // Its absolute value is no BIGINT.
            return typed(self.to_string(), DataType::BigInt(None));
        }
        number(self < 0, self.unsigned_abs().to_string(), true)
    }
}

impl IntoOperand for f64 {
    fn into_operand(self) -> Column {
        let text = if self.is_nan() {
            "NaN".to_owned()
        } else if self.is_infinite() {
            if self > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        } else {
            format!("{self:e}")
        };
        typed(text, DataType::Double(ExactNumberInfo::None))
    }
}

impl<T: IntoOperand> IntoOperand for Option<T> {
    fn into_operand(self) -> Column {
        self.map_or_else(|| literal(Value::Null), T::into_operand)
    }
}

fn literal(value: Value) -> Column {
    Column::value(Expr::Value(value.into()), 0)
}

fn number(is_negative: bool, digits: String, is_long: bool) -> Column {
    let value = Expr::Value(Value::Number(digits, is_long).into());
    if is_negative {
        return Column::value(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(value) }, 1);
    }
    Column::value(value, 0)
}

fn typed(text: String, data_type: DataType) -> Column {
    let expr = Box::new(Expr::Value(Value::SingleQuotedString(text).into()));
    Column::value(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }, 1)
}

/// A text as it stands between quotes in SQL.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "''")
}
