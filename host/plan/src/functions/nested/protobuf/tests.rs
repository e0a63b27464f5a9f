//! Messages in whole queries. `fixtures/make.py` has made the descriptor set and the messages with Google's own
//! implementation, and tells how.

use super::super::tests::{query, rows, session};
use serde_json::{Value, json};
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/functions/nested/protobuf/fixtures").join(name)
}

/// The bytes of a message, in hexadecimal.
fn bytes_of(message: &str) -> String {
    let all: Value = serde_json::from_str(&std::fs::read_to_string(fixture("messages.json")).unwrap()).unwrap();
    all[message]["bytes"].as_str().unwrap().to_owned()
}

fn set() -> String {
    fixture("shop.desc").display().to_string()
}

fn value_of(expression: &str) -> Value {
    let batches =
        query(&session(true), &format!("SELECT {expression} AS v")).unwrap_or_else(|e| panic!("{expression}: {e}"));
    rows(&batches)[0]["v"].clone()
}

/// Some fields of what an expression gives.
fn fields_of(expression: &str, names: &[&str]) -> Value {
    let fields: Vec<String> = names.iter().map(|name| format!("'{name}', {expression}.{name}")).collect();
    value_of(&format!("named_struct({})", fields.join(", ")))
}

fn error_of(expression: &str) -> String {
    query(&session(true), &format!("SELECT {expression} AS v")).expect_err(expression).to_string()
}

/// `from_protobuf` of a message of the fixtures.
fn reading(message: &str, name: &str, options: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = options.iter().map(|(key, value)| format!("'{key}', '{value}'")).collect();
    let options = if pairs.is_empty() { String::new() } else { format!(", map({})", pairs.join(", ")) };
    format!("from_protobuf(X'{}', '{name}', '{}'{options})", bytes_of(message), set())
}

#[test]
fn a_message_of_every_kind_of_field_becomes_a_struct_as_in_spark() {
    let message = reading("full", "shop.Everything", &[]);
    let expected = json!({
        "a_double": 1.5, "a_float": -0.25, "an_int32": -1, "an_int64": -(1_i64 << 62),
        "a_uint32": -294_967_296, "a_uint64": -2, "a_sint32": -3, "a_sint64": -5_000_000_000_i64,
        "a_fixed32": 7, "a_fixed64": 8, "a_sfixed32": -9, "a_sfixed64": -10, "a_bool": true,
        "a_string": "grüße", "some_bytes": "00ff", "color": "BLUE", "item": {"name": "pen", "amount": 3},
        "items": [{"name": "a", "amount": null}, {"name": null, "amount": null}, {"name": null, "amount": -2}],
        "packed": [1, -1, 300], "unpacked": [1, -1, 300], "colors": ["RED", "NONE", "BLUE"],
        "counts": {"x": 1, "y": -2}, "took": "PT3.5S",
        "at": "2023-11-14T22:13:20.123456Z", "maybe_long": {"value": null},
        "maybe_ulong": {"value": -1}, "maybe_text": {"value": "there"}, "optional_int32": 0, "by_name": null,
        "by_id": 0, "texts": ["", "b"],
    });
    let names: Vec<&str> = expected.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields_of(&message, &names), expected);
    assert_eq!(value_of(&format!("map_keys({message}.by_number)")), json!([-1, 5]));
    let values = json!([{"name": "minus", "amount": null}, {"name": null, "amount": 5}]);
    assert_eq!(value_of(&format!("map_values({message}.by_number)")), values);
}

#[test]
fn what_is_not_there_is_null_unless_zero_is_asked_for() {
    let scalars = ["a_bool", "a_double", "a_string", "an_int32", "color"];
    // These tell their absence from zero.
    let others = ["at", "by_id", "by_name", "item", "maybe_long", "optional_int32"];
    let repeated = ["counts", "items", "texts"];
    let plain = reading("empty", "shop.Everything", &[]);
    let with_zeros = reading("empty", "shop.Everything", &[("emit.default.values", "true")]);
    let nulls = json!({"a_bool": null, "a_double": null, "a_string": null, "an_int32": null, "color": null});
    assert_eq!(fields_of(&plain, &scalars), nulls);
    let zeros = json!({"a_bool": false, "a_double": 0.0, "a_string": "", "an_int32": 0, "color": "NONE"});
    assert_eq!(fields_of(&with_zeros, &scalars), zeros);
    for message in [&plain, &with_zeros] {
        let found = fields_of(message, &others);
        assert!(found.as_object().unwrap().values().all(Value::is_null), "{found}");
        assert_eq!(fields_of(message, &repeated), json!({"counts": {}, "items": [], "texts": []}));
    }
    // What an older definition gives as default.
    assert_eq!(value_of(&reading("order", "old.Order", &[])), json!({"id": 0, "state": "new", "amount": null}));
    assert_eq!(value_of(&reading("whole_order", "Order", &[])), json!({"id": 5, "state": "sent", "amount": 2}));
}

#[test]
fn options_change_the_types_as_in_spark() {
    let options =
        [("upcast.unsigned.ints", "true"), ("enums.as.ints", "true"), ("unwrap.primitive.wrapper.types", "true")];
    let found = reading("full", "shop.Everything", &options);
    assert_eq!(value_of(&format!("{found}.a_uint32")), json!(4_000_000_000_u64));
    assert_eq!(value_of(&format!("CAST({found}.a_uint64 AS STRING)")), json!("18446744073709551614"));
    assert_eq!(value_of(&format!("{found}.color")), json!(7));
    assert_eq!(value_of(&format!("{found}.colors")), json!([1, 0, 7]));
    assert_eq!(value_of(&format!("{found}.maybe_long")), json!(0));
    assert_eq!(value_of(&format!("CAST({found}.maybe_ulong AS STRING)")), json!("18446744073709551615"));
    assert_eq!(value_of(&format!("{found}.maybe_text")), json!("there"));
    let absent = reading("empty", "shop.Everything", &options);
    assert_eq!(value_of(&format!("{absent}.maybe_long")), Value::Null);
}

#[test]
fn times_before_1970_and_values_that_the_definition_does_not_have() {
    let found = fields_of(&reading("before_1970", "shop.Everything", &[]), &["at", "by_name", "took"]);
    assert_eq!(found, json!({"at": "1969-12-31T23:59:58.250Z", "by_name": "n", "took": "-PT1.5S"}));
    let found = fields_of(&reading("unknown", "shop.Everything", &[]), &["a_string", "color"]);
    assert_eq!(found, json!({"a_string": "x", "color": "UNKNOWN_ENUM_VALUE_Color_99"}));
}

#[test]
fn a_message_in_itself_is_refused_or_cut_off_at_a_depth() {
    let error = error_of(&reading("person", "shop.Person", &[]));
    assert!(error.contains("RECURSIVE_PROTOBUF_SCHEMA") && error.contains("recursive.fields.max.depth"), "{error}");
    let at = |depth: &str| value_of(&reading("person", "shop.Person", &[("recursive.fields.max.depth", depth)]));
    assert_eq!(at("1"), json!({"name": "a"}));
    assert_eq!(at("2"), json!({"name": "a", "friend": {"name": "b"}, "children": [{"name": "d"}]}));
    let third = at("3");
    assert_eq!(third["friend"], json!({"name": "b", "friend": {"name": "c"}, "children": []}));
    assert!(error_of(&reading("person", "shop.Person", &[("recursive.fields.max.depth", "11")])).contains("to 10"));
}

#[test]
fn any_message_is_bytes_or_json_and_a_message_without_fields_is_left_out_or_kept() {
    let plain = value_of(&reading("envelope", "shop.Envelope", &[]));
    assert_eq!(plain["details"]["type_url"], json!("type.googleapis.com/shop.Everything.Item"));
    let found = value_of(&reading("envelope", "shop.Envelope", &[("convert.any.fields.to.json", "true")]));
    let details: Value = serde_json::from_str(found["details"].as_str().unwrap()).unwrap();
    assert_eq!(details, json!({"@type": "type.googleapis.com/shop.Everything.Item", "name": "pen", "amount": 3}));

    assert_eq!(value_of(&reading("with_nothing", "shop.WithNothing", &[])), json!({"name": "n"}));
    let kept = value_of(&reading("with_nothing", "shop.WithNothing", &[("retain.empty.message.types", "true")]));
    assert_eq!(kept, json!({"name": "n", "nothing": {"__dummy_field_in_empty_struct": null}}));
    assert!(error_of(&reading("empty", "shop.Nothing", &[])).contains("retain.empty.message.types"));
}

#[test]
fn bytes_that_are_no_message_fail_the_query_or_are_structs_of_nulls_and_their_neighbours_stay() {
    for bad in ["08", "0A05", "FFFFFFFFFFFFFFFFFFFFFF01", "0A02C328"] {
        let error = error_of(&format!("from_protobuf(X'{bad}', 'shop.Everything.Item', '{}')", set()));
        assert!(error.contains("MALFORMED_PROTOBUF_MESSAGE") && error.contains("PERMISSIVE"), "{bad}: {error}");
    }
    let sql = format!(
        "SELECT from_protobuf(b, 'shop.Everything.Item', '{}', map('mode', 'PERMISSIVE')) AS v \
         FROM VALUES (X'0A0161'), (X'08'), (NULL), (X'1003') AS t(b)",
        set()
    );
    let found: Vec<Value> = rows(&query(&session(true), &sql).unwrap()).iter().map(|row| row["v"].clone()).collect();
    let nulls = json!({"name": null, "amount": null});
    assert_eq!(found, [json!({"name": "a", "amount": null}), nulls, Value::Null, json!({"name": null, "amount": 3})]);
    // A time that has no room in its type is malformed by itself.
    let far = "BA010A08FFFFFFFFFFFFFFFF7F";
    let call = |mode: &str| format!("from_protobuf(X'{far}', 'Everything', '{}', map('mode', '{mode}')).at", set());
    assert!(error_of(&call("FAILFAST")).contains("outside"));
    assert_eq!(value_of(&call("PERMISSIVE")), Value::Null);
}

#[test]
fn a_message_nested_without_end_ends_the_row_and_not_the_program() {
    // `Person.friend` in itself, each with its length, as deep as a short length goes.
    let mut bytes = Vec::new();
    for _ in 0..60_000 {
        let mut outer = vec![0x12];
        super::wire::bytes(&bytes, &mut outer);
        bytes = outer;
        if bytes.len() > 4_000 {
            break;
        }
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let options = "map('mode', 'PERMISSIVE', 'recursive.fields.max.depth', '2')";
    let found = value_of(&format!("from_protobuf(X'{hex}', 'Person', '{}', {options})", set()));
    assert_eq!(found, json!({"name": null, "friend": null, "children": null}));
}

#[test]
fn what_was_read_is_written_as_googles_implementation_writes_it() {
    for (message, name) in [
        ("full", "shop.Everything"),
        ("empty", "shop.Everything"),
        ("before_1970", "shop.Everything"),
        ("envelope", "shop.Envelope"),
        ("whole_order", "old.Order"),
        ("order", "old.Order"),
    ] {
        let options = [("upcast.unsigned.ints", "true"), ("unwrap.primitive.wrapper.types", "true")];
        for options in [&[][..], &options] {
            let written = format!("to_protobuf({}, '{name}', '{}')", reading(message, name, options), set());
            // The default of the older definition was read, so it is written.
            let expected = if message == "order" { "080012036E6577".to_lowercase() } else { bytes_of(message) };
            assert_eq!(value_of(&written), json!(expected), "{message} {options:?}");
        }
    }
}

#[test]
fn columns_are_matched_by_name_and_checked_when_the_query_is_planned() {
    let call = |value: &str, name: &str| format!("to_protobuf({value}, '{name}', '{}')", set());
    assert_eq!(value_of(&call("named_struct('AMOUNT', CAST(3 AS INT))", "shop.Everything.Item")), json!("1003"));
    assert_eq!(
        value_of(&call("named_struct('color', CAST(7 AS INT), 'a_bool', false)", "Everything")),
        json!("800107")
    );
    assert_eq!(value_of(&call("named_struct('name', CAST(NULL AS STRING))", "Person")), json!(""));
    for (value, name, expected) in [
        ("named_struct('other', 3)", "shop.Everything.Item", "no field for column `other`"),
        ("named_struct('amount', 'x')", "shop.Everything.Item", "cannot be field"),
        ("named_struct('packed', CAST(1 AS INT))", "Everything", "Repeated"),
        ("named_struct('state', 'x')", "old.Order", "must have"),
        ("named_struct('id', 1)", "old.Orders", "PROTOBUF_MESSAGE_NOT_FOUND"),
        ("named_struct('amount', CAST(3 AS INT), 'Amount', CAST(4 AS INT))", "shop.Everything.Item", "two columns"),
        ("3", "Person", "STRUCT"),
        ("named_struct('color', 'GREEN')", "Everything", "no value called `GREEN`"),
        ("named_struct('packed', array(CAST(1 AS INT), NULL))", "Everything", "a null"),
        ("named_struct('a_uint32', CAST(-1 AS BIGINT))", "Everything", "without sign"),
    ] {
        let error = error_of(&call(value, name));
        assert!(error.contains(expected), "{value}: {error}");
    }
}

#[test]
fn the_descriptor_set_may_be_bytes_and_must_be_one() {
    let bytes = std::fs::read(fixture("shop.desc")).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(value_of(&format!("from_protobuf(X'1003', 'shop.Everything.Item', X'{hex}').amount")), json!(3));
    assert!(error_of("from_protobuf(X'', 'A', '/no/such/file')").contains("PROTOBUF_DESCRIPTOR_FILE_NOT_FOUND"));
    assert!(error_of("from_protobuf(X'', 'A', X'0102')").contains("CANNOT_PARSE_PROTOBUF_DESCRIPTOR"));
    let unknown = format!("from_protobuf(X'', 'Person', '{}', map('depth', '1'))", set());
    assert!(error_of(&unknown).contains("recursive.fields.max.depth"));
}

#[test]
fn messages_of_the_older_syntax_keep_its_rules_as_in_java() {
    let parts = ["id", "state", "history", "leg", "orders"];
    let permissive = [("mode", "PERMISSIVE")];
    let whole = json!({
        "id": 3, "state": "SENT", "history": ["OPEN", "SENT"], "orders": [{"id": 1, "state": "new", "amount": null}],
        "leg": {"state": null, "history": ["SENT"], "by_day": {"mon": "OPEN"}},
    });
    assert_eq!(fields_of(&reading("parcel", "old.Parcel", &[]), &parts), whole);
    // Google's own implementation leaves the same values out.
    let mut inside = whole;
    inside["leg"]["history"] = json!(["SENT", "OPEN"]);
    assert_eq!(fields_of(&reading("parcel_of_another_state_inside", "old.Parcel", &[]), &parts), inside);
    for (message, field) in
        [("parcel_of_another_state", "state"), ("parcel_with_another_state_among_others", "history")]
    {
        let error = error_of(&reading(message, "old.Parcel", &[]));
        assert!(error.contains(&format!("`old.Parcel.{field}` has no value 9")), "{error}");
        assert_eq!(value_of(&format!("{}.id", reading(message, "old.Parcel", &permissive))), Value::Null);
    }
    for (bytes, name, missing) in [
        ("", "old.Order", "old.Order.id"),
        ("1001", "old.Parcel", "old.Parcel.id"),
        ("08032A00", "old.Parcel", "old.Order.id"),
    ] {
        let call = |options: &str| format!("from_protobuf(X'{bytes}', '{name}', '{}'{options})", set());
        let error = error_of(&call(""));
        assert!(error.contains("MALFORMED_PROTOBUF_MESSAGE"), "{error}");
        assert!(error.contains(&format!("`{missing}` is missing")), "{error}");
        assert_eq!(value_of(&format!("{}.id", call(", map('mode', 'PERMISSIVE')"))), Value::Null);
    }
}
