use super::*;
use arrow::array::AsArray;
use arrow::datatypes::TimeUnit;

fn schema(fields: Vec<(&str, DataType)>) -> SchemaRef {
    Arc::new(Schema::new(fields.into_iter().map(|(name, t)| Field::new(name, t, true)).collect::<Vec<_>>()))
}

fn decoder(fields: Vec<(&str, DataType)>, options: JsonOptions) -> JsonDecoder {
    let schema = schema(fields);
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    JsonDecoder::new(&schema, &all, options).unwrap()
}

fn rows(batch: &RecordBatch) -> Vec<String> {
    crate::contract::lines(batch)
}

fn decode(fields: Vec<(&str, DataType)>, input: &str) -> Vec<String> {
    rows(&decoder(fields, JsonOptions::default()).decode(input.as_bytes()).unwrap())
}

fn events() -> Vec<(&'static str, DataType)> {
    vec![("id", DataType::Int32), ("word", DataType::Utf8), ("n", DataType::Int64), ("flag", DataType::Boolean)]
}

#[test]
fn malformed_lines_and_wrong_types_give_what_spark_gives() {
    let first = "{\"id\":1,\"word\":\"ok\",\"n\":5,\"flag\":true}\n{\"id\":2,\"word\":\n\
                 {\"id\":3,\"word\":\"w\",\"n\":\"abc\",\"flag\":false}\n";
    assert_eq!(decode(events(), first), ["1|ok|5|true", "-|-|-|-", "3|w|-|false"]);
    let second = "{\"id\":4,\"extra\":[1],\"word\":5}\n{\"id\":2147483648,\"word\":\"big\"}\n\n\
                  {\"ID\":6,\"Word\":\"case\"}\n[{\"id\":7},{\"id\":8,\"word\":\"arr\"}]";
    assert_eq!(decode(events(), second), ["4|5|-|-", "-|big|-|-", "-|-|-|-", "7|-|-|-", "8|arr|-|-"]);
}

#[test]
fn only_objects_and_arrays_of_objects_are_records() {
    let null = "-|-|-|-".to_owned();
    for text in
        ["null", "5", "\"x\"", "[1]", "[null]", "[{\"id\":1},2]", "{", "{\"id\":1", "{\"id\":tru}", "{\"id\" 1}"]
    {
        assert_eq!(decode(events(), text), std::slice::from_ref(&null), "{text}");
    }
    assert_eq!(decode(events(), "[]\n  \n{}"), [null]);
    assert_eq!(decode(events(), "{\"id\":1} trailing"), ["1|-|-|-"]);
}

#[test]
fn strings_take_any_value_as_its_text() {
    let text = decode(
        vec![("s", DataType::Utf8)],
        "{\"s\":1.50}\n{\"s\":{\"a\": [1, 2]}}\n{\"s\":true}\n{\"s\":null}\n{\"s\":'it'}\n{\"s\":\"\\u00e9\"}",
    );
    assert_eq!(text, ["1.50", "{\"a\": [1, 2]}", "true", "-", "it", "é"]);
}

#[test]
fn the_last_of_equal_names_wins_unless_it_does_not_fit() {
    assert_eq!(decode(events(), r#"{"id":1,"id":2}"#), ["2|-|-|-"]);
    assert_eq!(decode(events(), r#"{"id":1,"id":"x"}"#), ["1|-|-|-"]);
    assert_eq!(decode(events(), r#"{"id":"x","id":2,"word":"a","word":"bcd"}"#), ["2|bcd|-|-"]);
}

#[test]
fn scalars_of_every_type() {
    let fields = vec![
        ("t", DataType::Int8),
        ("h", DataType::Int16),
        ("f", DataType::Float32),
        ("d", DataType::Float64),
        ("c", DataType::Decimal128(7, 2)),
        ("b", DataType::Binary),
        ("day", DataType::Date32),
        ("ts", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
    ];
    let input = r#"{"t":-128,"h":300,"f":1.5,"d":"NaN","c":"12.345","b":"Zm8=","day":"2024-05-01","ts":"2024-05-01 12:00:00+02:00"}
{"t":300,"h":1.0,"f":"x","d":"","c":1234567,"b":"!","day":5,"ts":60}
{"t":1,"h":1,"f":NaN,"d":1e400,"c":1.005,"b":"","day":"x","ts":"x"}"#;
    assert_eq!(
        decode(fields, input),
        [
            "-128|300|1.5|NaN|12.35|666f|2024-05-01|2024-05-01T10:00:00",
            "-|-|-|-|-|-|-|1970-01-01T00:01:00",
            "1|1|NaN|inf|1.01||-|-",
        ]
    );
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, true)))
}

fn map(value: DataType) -> DataType {
    let entry = Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry), false)), false)
}

#[test]
fn nested_values_keep_what_fits() {
    let inner =
        DataType::Struct(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)].into());
    let fields =
        vec![("a", list(DataType::Int32)), ("m", map(DataType::Int32)), ("s", inner.clone()), ("l", list(inner))];
    let input = r#"{"a":[1,null,3],"m":{"k":1,"l":null},"s":{"x":1,"y":"b"},"l":[{"x":1},{"y":"q"}]}
{"a":[1,"no",3],"m":{"k":"no"},"s":{"x":"no","y":"b"},"l":[{"x":"no","y":"p"},{"x":2}]}
{"a":5,"m":[],"s":"no","l":[1]}
{"a":[],"m":{},"s":{},"l":[]}"#;
    assert_eq!(
        decode(fields, input),
        [
            "[1, , 3]|{k: 1, l: }|{x: 1, y: b}|[{x: 1, y: }, {x: , y: q}]",
            "-|-|{x: , y: b}|[{x: , y: p}, {x: 2, y: }]",
            "-|-|-|-",
            "[]|{}|{x: , y: }|[]",
        ]
        .map(|line| line.replace(", ,", ", -,").replace(": ,", ": -,").replace(": }", ": -}"))
    );
}

#[test]
fn a_record_that_breaks_late_leaves_nothing_behind() {
    let fields = vec![("a", list(DataType::Utf8)), ("m", map(list(DataType::Int64)))];
    let input = "{\"a\":[\"x\"],\"m\":{\"k\":[1,2]}}\n{\"a\":[\"y\",\"z\"],\"m\":{\"k\":[3,\n{\"a\":[\"w\"]}";
    assert_eq!(decode(fields, input), ["[x]|{k: [1, 2]}", "-|-", "[w]|-"]);
}

#[test]
fn modes_drop_or_fail() {
    let input = b"{\"id\":1}\n{\"id\":\"x\"}\n{bad\n{\"id\":2}";
    let drop = JsonOptions { mode: ParseMode::DropMalformed, ..JsonOptions::default() };
    assert_eq!(rows(&decoder(events(), drop).decode(input).unwrap()), ["1|-|-|-", "2|-|-|-"]);
    let fail = JsonOptions { mode: ParseMode::FailFast, ..JsonOptions::default() };
    let error = decoder(events(), fail).decode(input).unwrap_err();
    assert_eq!(error.to_string(), "record 2 of the input is malformed: `{\"id\":\"x\"}`");
}

#[test]
fn the_corrupt_column_takes_the_text_of_damaged_records() {
    let fields = vec![("id", DataType::Int32), ("_corrupt_record", DataType::Utf8)];
    let input = "{\"id\":1,\"_corrupt_record\":\"forged\"}\n{bad\n[{\"id\":2},{\"id\":\"x\"}]";
    assert_eq!(
        decode(fields, input),
        ["1|-", "-|{bad", "2|[{\"id\":2},{\"id\":\"x\"}]", "-|[{\"id\":2},{\"id\":\"x\"}]"]
    );
}

#[test]
fn only_the_projection_is_decoded_and_rows_are_counted_without_columns() {
    let schema = schema(events());
    let decoder = JsonDecoder::new(&schema, &[2], JsonOptions::default()).unwrap();
    let batch = decoder.decode(b"{\"id\":\"x\",\"n\":7}").unwrap();
    assert_eq!(rows(&batch), ["7"]);
    let none = JsonDecoder::new(&schema, &[], JsonOptions::default()).unwrap();
    assert_eq!(none.decode(b"{\"id\":1}\n\n[{},{}]\nbad").unwrap().num_rows(), 4);
    assert!(matches!(
        JsonDecoder::new(&schema, &[4], JsonOptions::default()),
        Err(DecodeError::Projection { index: 4, columns: 4 })
    ));
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let batch = decoder(vec![("s", DataType::Utf8)], JsonOptions::default()).decode(b"{\"s\":\"a\xffb\"}").unwrap();
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "a\u{fffd}b");
}

#[test]
fn texts_of_a_column_give_one_row_each() {
    let decoder = decoder(vec![("id", DataType::Int32)], JsonOptions::default());
    let texts = [Some("{\n\"id\":1}"), None, Some(""), Some("[{\"id\":2},{\"id\":3}]"), Some("x")];
    assert_eq!(rows(&decoder.decode_text(&texts).unwrap()), ["1", "-", "-", "2", "-"]);
}

#[test]
fn types_that_json_cannot_give_are_refused_by_name() {
    let schema = schema(vec![("u", DataType::UInt8)]);
    let error = JsonDecoder::new(&schema, &[0], JsonOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "column `u` cannot be decoded as UInt8");
}

#[test]
fn random_bytes_never_panic_and_every_line_is_a_row() {
    let alphabet = b"{}[]\",:'\\u0123456789eE+-.truefalsn \t\xff";
    let decoder = decoder(
        vec![("a", list(DataType::Int32)), ("e", DataType::Utf8), ("m", map(DataType::Utf8))],
        JsonOptions::default(),
    );
    let mut seed = 42_u64;
    for _ in 0..20_000 {
        let line: Vec<u8> = (0..24)
            .map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                alphabet[(seed >> 33) as usize % alphabet.len()]
            })
            .collect();
        let text = [b"{\"a\":[1".as_slice(), &line, b"\n{\"e\":", &line].concat();
        assert_eq!(decoder.decode(&text).unwrap().num_rows(), 2, "{}", String::from_utf8_lossy(&text));
    }
}
