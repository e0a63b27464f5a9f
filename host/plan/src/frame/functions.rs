//! Functions that make columns, with Spark's names. Every other function of SQL is reached by [`call_function`] or [`expr`].

use super::column::Column;
use super::literal::IntoOperand;

/// The column of that name. `a.b` is the column `b` of the frame called `a`, or a field; backquotes take dots into a name.
pub fn col(name: &str) -> Column {
    Column::named(name)
}

/// A literal.
pub fn lit(value: impl IntoOperand) -> Column {
    value.into_operand()
}

/// The column that a text in SQL describes: `expr("n + 1 AS next")`.
pub fn expr(sql: &str) -> Column {
    Column::parsed(sql)
}

/// The call of any function of SQL or of a plugin.
pub fn call_function<C: Into<Column>>(name: &str, arguments: impl IntoIterator<Item = C>) -> Column {
    Column::call(name, arguments.into_iter().map(Into::into).collect(), false)
}

/// The durations of a window: a size, or a size with a slide, or both with the start of the first window after 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowDurations(Vec<String>);

impl From<&str> for WindowDurations {
    fn from(size: &str) -> Self {
        Self(vec![size.to_owned()])
    }
}

impl From<(&str, &str)> for WindowDurations {
    fn from((size, slide): (&str, &str)) -> Self {
        Self(vec![size.to_owned(), slide.to_owned()])
    }
}

impl From<(&str, &str, &str)> for WindowDurations {
    fn from((size, slide, start): (&str, &str, &str)) -> Self {
        Self(vec![size.to_owned(), slide.to_owned(), start.to_owned()])
    }
}

/// The windows that a time is in: `window("ts", "10 minutes")`, `window("ts", ("10 minutes", "5 minutes"))`, and with a start
/// `window("ts", ("10 minutes", "5 minutes", "1 minute"))`.
pub fn window(time: impl Into<Column>, durations: impl Into<WindowDurations>) -> Column {
    let mut arguments = vec![time.into()];
    arguments.extend(durations.into().0.iter().map(|duration| duration.into_operand()));
    Column::call("window", arguments, false)
}

/// The session that a time is in: rows that are less than `gap` apart. The gap is a duration, or a column that gives one.
pub fn session_window(time: impl Into<Column>, gap: impl IntoOperand) -> Column {
    Column::call("session_window", vec![time.into(), gap.into_operand()], false)
}

/// The number of rows in which the column is not null; of all rows for `"*"`.
pub fn count(column: impl Into<Column>) -> Column {
    Column::call("count", vec![column.into()], false)
}

/// The number of different values.
pub fn count_distinct(column: impl Into<Column>) -> Column {
    Column::call("count", vec![column.into()], true)
}

/// The first branch of a choice; see [`Choice`].
pub fn when(condition: impl Into<Column>, result: impl IntoOperand) -> Choice {
    Choice { branches: vec![(condition.into(), result.into_operand())] }
}

/// A choice between values: `when("n > 3", "many").when("n > 1", "some").otherwise("one")`.
#[derive(Debug, Clone)]
#[must_use]
pub struct Choice {
    branches: Vec<(Column, Column)>,
}

impl Choice {
    /// A further branch.
    pub fn when(mut self, condition: impl Into<Column>, result: impl IntoOperand) -> Self {
        self.branches.push((condition.into(), result.into_operand()));
        self
    }

    /// What it is when no condition holds.
    pub fn otherwise(self, result: impl IntoOperand) -> Column {
        Column::case(self.branches, Some(result.into_operand()))
    }

    /// Null when no condition holds.
    pub fn end(self) -> Column {
        Column::case(self.branches, None)
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*);)*) => {
        $($(#[$doc])*
        pub fn $name($($argument: impl Into<Column>),*) -> Column {
            Column::call(stringify!($name), vec![$($argument.into()),*], false)
        })*
    };
}

functions! {
    /// One row per element of an array, or per entry of a map.
    explode(column);
    /// As [`explode`]; an empty or null collection gives one row with null.
    explode_outer(column);
    /// As [`explode`], with the position before it.
    posexplode(column);
    /// As [`posexplode`]; an empty or null collection gives one row with nulls.
    posexplode_outer(column);
    /// One row per struct of an array, its fields as columns.
    inline(column);
    /// The sum.
    sum(column);
    /// The mean.
    avg(column);
    /// The least value.
    min(column);
    /// The greatest value.
    max(column);
    /// The value of `value` where `order` is least.
    min_by(value, order);
    /// The value of `value` where `order` is greatest.
    max_by(value, order);
    /// The value of the first row.
    first(column);
    /// The value of the last row.
    last(column);
    /// All values as an array.
    collect_list(column);
    /// All different values as an array.
    collect_set(column);
    /// About how many different values there are.
    approx_count_distinct(column);
    /// The last moment of a window, as event time.
    window_time(window);
    /// The time of the batch.
    current_timestamp();
    /// In lower case.
    lower(column);
    /// In upper case.
    upper(column);
    /// Without spaces at both ends.
    trim(column);
    /// The number of characters.
    length(column);
    /// The absolute value.
    abs(column);
    /// The size of an array or a map.
    size(column);
    /// The first that is not null of two.
    ifnull(column, otherwise);
}

/// The parts of a text between matches of a regular expression.
pub fn split(column: impl Into<Column>, pattern: &str) -> Column {
    Column::call("split", vec![column.into(), pattern.into_operand()], false)
}

/// The first that is not null.
pub fn coalesce<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> Column {
    call_function("coalesce", columns)
}

/// The texts one behind the other.
pub fn concat<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> Column {
    call_function("concat", columns)
}

/// A struct of the columns.
pub fn struct_<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> Column {
    call_function("struct", columns)
}

/// An array of the columns.
pub fn array<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> Column {
    call_function("array", columns)
}

/// The value that a JSON text has, in the types of `schema`: `"id INT, tags ARRAY<STRING>"`.
pub fn from_json(column: impl Into<Column>, schema: &str) -> Column {
    Column::call("from_json", vec![column.into(), schema.into_operand()], false)
}

/// As JSON text.
pub fn to_json(column: impl Into<Column>) -> Column {
    Column::call("to_json", vec![column.into()], false)
}

/// The time that a text has, in Spark's pattern.
pub fn to_timestamp(column: impl Into<Column>, pattern: &str) -> Column {
    Column::call("to_timestamp", vec![column.into(), pattern.into_operand()], false)
}

/// A time as text, in Spark's pattern.
pub fn date_format(column: impl Into<Column>, pattern: &str) -> Column {
    Column::call("date_format", vec![column.into(), pattern.into_operand()], false)
}

/// The value that bytes in Avro's binary form have.
pub fn from_avro(column: impl Into<Column>, schema: &str) -> Column {
    Column::call("from_avro", vec![column.into(), schema.into_operand()], false)
}

/// In Avro's binary form, with the schema that Spark gives the type.
pub fn to_avro(column: impl Into<Column>) -> Column {
    Column::call("to_avro", vec![column.into()], false)
}

/// The value that framed bytes in Avro's binary form have, read as a subject of the schema registry at `address` says.
pub fn from_avro_subject(column: impl Into<Column>, subject: &str, address: &str, options: &[(&str, &str)]) -> Column {
    of_subject("from_avro", column.into(), (subject, address), options)
}

/// In Avro's binary form, framed and written as a subject of the schema registry at `address` says.
pub fn to_avro_subject(column: impl Into<Column>, subject: &str, address: &str, options: &[(&str, &str)]) -> Column {
    of_subject("to_avro", column.into(), (subject, address), options)
}

/// The value that framed JSON has, read as a subject of the schema registry at `address` says.
pub fn from_json_subject(column: impl Into<Column>, subject: &str, address: &str, options: &[(&str, &str)]) -> Column {
    of_subject("from_json", column.into(), (subject, address), options)
}

/// The struct that a message of Protocol Buffers is; `descriptor_set` is the path of a file.
pub fn from_protobuf(
    column: impl Into<Column>,
    message: &str,
    descriptor_set: &str,
    options: &[(&str, &str)],
) -> Column {
    of_subject("from_protobuf", column.into(), (message, descriptor_set), options)
}

/// The message of Protocol Buffers that a struct is; `descriptor_set` is the path of a file.
pub fn to_protobuf(column: impl Into<Column>, message: &str, descriptor_set: &str, options: &[(&str, &str)]) -> Column {
    of_subject("to_protobuf", column.into(), (message, descriptor_set), options)
}

/// A function of a value, two constants and options.
fn of_subject(function: &str, value: Column, (name, place): (&str, &str), options: &[(&str, &str)]) -> Column {
    let mut arguments = vec![value, name.into_operand(), place.into_operand()];
    if !options.is_empty() {
        let pairs = options.iter().flat_map(|(key, value)| [key.into_operand(), value.into_operand()]);
        arguments.push(Column::call("map", pairs.collect(), false));
    }
    Column::call(function, arguments, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_from_constants_is_the_call_that_sql_has() {
        let text = |column: Column| column.into_expr().unwrap().to_string();
        let options = [("mode", "PERMISSIVE"), ("version", "3")];
        assert_eq!(
            text(from_avro_subject(expr("v"), "s", "http://r", &options)),
            "from_avro(v, 's', 'http://r', map('mode', 'PERMISSIVE', 'version', '3'))"
        );
        assert_eq!(text(to_avro_subject(expr("v"), "s", "http://r", &[])), "to_avro(v, 's', 'http://r')");
        assert_eq!(text(from_json_subject(expr("v"), "s", "http://r", &[])), "from_json(v, 's', 'http://r')");
        assert_eq!(text(from_protobuf(expr("v"), "M", "m.desc", &[])), "from_protobuf(v, 'M', 'm.desc')");
        assert_eq!(text(to_protobuf(expr("v"), "M", "m.desc", &[])), "to_protobuf(v, 'M', 'm.desc')");
        assert_eq!(text(to_avro(from_avro(expr("v"), "long"))), "to_avro(from_avro(v, 'long'))");
    }
}
