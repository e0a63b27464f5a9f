//! Which columns a database can hold, and whether those of a query fit those of a table.

use arrow::datatypes::{DataType, Field, Schema};

/// The kinds of columns that matter for what fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Truth values.
    Boolean,
    /// Whole numbers.
    Integer,
    /// Decimals.
    Decimal,
    /// Numbers of single precision.
    Single,
    /// Numbers of double precision.
    Double,
    /// Text.
    Text,
    /// JSON.
    Json,
    /// Bytes.
    Binary,
    /// Days.
    Date,
    /// Times with days.
    Timestamp,
    /// What the server makes of text: enumerations, UUIDs, addresses.
    Other,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its type, as the server calls it.
    pub(crate) data_type: String,
    /// Its kind.
    pub(crate) family: Family,
    /// How many digits stand behind the point of a decimal or of a second, where that is fixed.
    pub(crate) digits: Option<i32>,
    /// Whether a row must bring a value.
    pub(crate) is_required: bool,
}

/// Whether a database has a counterpart of a type.
pub(crate) fn has_counterpart(data_type: &DataType) -> bool {
    match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(..)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Date32
        | DataType::Timestamp(..) => true,
        DataType::Dictionary(_, values) => has_counterpart(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => is_json(item),
        DataType::Map(entry, _) => is_json(entry),
        DataType::Struct(fields) => fields.iter().all(|field| is_json(field)),
        _ => false,
    }
}

/// Inside of JSON there may be nothing but nulls.
fn is_json(field: &Field) -> bool {
    field.data_type() == &DataType::Null || has_counterpart(field.data_type())
}

/// What no database can hold.
pub(super) fn check_types(schema: &Schema, wrong: &mut Vec<String>) {
    if schema.fields().is_empty() {
        wrong.push("there are none; select at least one".into());
    }
    for (at, field) in schema.fields().iter().enumerate() {
        let name = field.name();
        if !has_counterpart(field.data_type()) {
            let data_type = field.data_type();
            wrong.push(format!(
                "column `{name}` of type {data_type} has no counterpart there; cast it, for example to a string"
            ));
        }
        if schema.fields()[..at].iter().any(|earlier| earlier.name().eq_ignore_ascii_case(name)) {
            wrong.push(format!("there are two columns `{name}`; give one another name"));
        }
    }
}

/// Where the columns of a query, without the one that says what changes, do not fit a table.
pub(super) fn check_table(schema: &Schema, without: Option<usize>, table: &[TableColumn], wrong: &mut Vec<String>) {
    let written: Vec<&Field> = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != without)
        .map(|(_, field)| field.as_ref())
        .collect();
    let mut missing = Vec::new();
    for field in &written {
        match table.iter().find(|column| column.name == *field.name()) {
            None => missing.push(format!("`{}`", field.name())),
            Some(column) => wrong.extend(misfit(field, column)),
        }
    }
    if !missing.is_empty() {
        let there: Vec<&str> = table.iter().map(|column| column.name.as_str()).collect();
        wrong.push(format!("the table has no column {}; it has {}", missing.join(", "), there.join(", ")));
    }
    let is_written = |column: &&TableColumn| written.iter().any(|field| field.name() == &column.name);
    for column in table.iter().filter(|column| column.is_required && !is_written(column)) {
        wrong.push(format!(
            "the table's column `{}` must have a value, and the query has no such column; add it, or give it a default",
            column.name
        ));
    }
}

/// Why a column of a query does not go into the table's of the same name, if it does not.
fn misfit(field: &Field, column: &TableColumn) -> Option<String> {
    let (name, data_type) = (field.name(), field.data_type());
    // What has no counterpart at all is told already.
    if !has_counterpart(data_type) {
        return None;
    }
    if !fits(data_type, column) {
        return Some(format!(
            "column `{name}` of type {data_type} does not fit the table's `{name} {}`; cast it in the query",
            column.data_type
        ));
    }
    let needed = match data_type {
        DataType::Decimal128(_, scale) => i32::from(*scale),
        DataType::Timestamp(..) => 6,
        _ => 0,
    };
    column.digits.is_some_and(|digits| digits < needed).then(|| {
        format!(
            "column `{name}` of type {data_type} has {needed} digits behind the point, and the table's `{name} {}` keeps \
             fewer; change the table's column, or round in the query",
            column.data_type
        )
    })
}

fn fits(data_type: &DataType, column: &TableColumn) -> bool {
    use Family as F;
    let family = column.family;
    match data_type {
        DataType::Boolean => matches!(family, F::Boolean),
        DataType::Int8 | DataType::Int16 => matches!(family, F::Integer | F::Decimal | F::Single | F::Double),
        DataType::Int32 => matches!(family, F::Integer | F::Decimal | F::Double),
        DataType::Int64 => matches!(family, F::Integer | F::Decimal),
        DataType::Float32 => matches!(family, F::Single | F::Double),
        DataType::Float64 => family == F::Double,
        DataType::Decimal128(..) => family == F::Decimal,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => matches!(family, F::Text | F::Json | F::Other),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => family == F::Binary,
        DataType::Date32 => family == F::Date,
        DataType::Timestamp(..) => family == F::Timestamp,
        DataType::Dictionary(_, values) => fits(values, column),
        _ => matches!(family, F::Json | F::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::TimeUnit;

    fn column(name: &str, data_type: &str, family: Family, digits: Option<i32>, is_required: bool) -> TableColumn {
        TableColumn { name: name.into(), data_type: data_type.into(), family, digits, is_required }
    }

    fn schema(data_type: DataType) -> Schema {
        Schema::new(vec![Field::new("a", data_type, true)])
    }

    fn differences(schema: &Schema, table: &[TableColumn]) -> Vec<String> {
        let mut wrong = Vec::new();
        check_table(schema, None, table, &mut wrong);
        wrong
    }

    #[test]
    fn what_would_be_rounded_without_a_word_is_refused() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        for (data_type, family, digits, ok) in [
            (DataType::Decimal128(10, 4), Family::Decimal, Some(2), false),
            (DataType::Decimal128(10, 2), Family::Decimal, Some(2), true),
            (DataType::Decimal128(10, 2), Family::Decimal, None, true),
            (time.clone(), Family::Timestamp, Some(0), false),
            (time, Family::Timestamp, Some(6), true),
            (DataType::Float64, Family::Single, None, false),
            (DataType::Int64, Family::Double, None, false),
            (DataType::Utf8, Family::Integer, None, false),
        ] {
            let found = differences(&schema(data_type.clone()), &[column("a", "x", family, digits, true)]);
            assert_eq!(found.is_empty(), ok, "{data_type} in {family:?}: {found:?}");
        }
    }

    #[test]
    fn all_differences_are_named_at_once() {
        let query = Schema::new(vec![
            Field::new("a", DataType::Int32, true),
            Field::new("b", DataType::Utf8, true),
            Field::new("c", DataType::Int32, true),
        ]);
        let table =
            [column("b", "integer", Family::Integer, None, false), column("d", "integer", Family::Integer, None, true)];
        let found = differences(&query, &table);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("column `b` of type Utf8 does not fit the table's `b integer`"), "{found:?}");
        assert_eq!(found[1], "the table has no column `a`, `c`; it has b, d");
        assert!(found[2].contains("`d` must have a value"), "{found:?}");
    }

    #[test]
    fn types_without_a_counterpart_are_refused() {
        let interval = DataType::Interval(arrow::datatypes::IntervalUnit::YearMonth);
        let wrong = |schema: &Schema| {
            let mut wrong = Vec::new();
            check_types(schema, &mut wrong);
            wrong
        };
        assert!(wrong(&schema(interval))[0].contains("no counterpart"));
        assert_eq!((wrong(&schema(DataType::Null)).len(), wrong(&Schema::empty()).len()), (1, 1));
        let nested = DataType::List(Field::new("item", DataType::Decimal128(5, 2), true).into());
        assert!(wrong(&schema(nested)).is_empty());
    }
}
