//! The columns of the query against those of the table.

use crate::sink::{open, options, query, write};
use crate::{server, stories};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use databases_tests::query::{Story, rows as pairs};
use databases_tests::{Product, execute, has_table, rows};
use millstream_common::{Options, describe_chain};
use millstream_runtime::{OutputMode, inspect};
use std::sync::Arc;

stories! {
    every_type_comes_back_as_it_went
    what_does_not_fit_is_refused_before_the_first_batch
    all_that_does_not_fit_is_told_at_once_and_nothing_is_left_behind
    a_row_without_its_key_is_refused
    rows_of_different_keys_never_meet
}

fn every_type_comes_back_as_it_went(product: Product) {
    let server = server(product);
    let url = server.database();
    let micros = [1_714_564_800_123_456, -1, 0];
    // What MySQL has no counterpart of is in another test.
    let (strange, endless) = match product {
        Product::Postgres => (f32::NAN, f64::NEG_INFINITY),
        Product::Mysql => (-1.5, -1e300),
    };
    let money = [Some(99_999_999_999_999_999_999_999_999_999_999_999_999), Some(-5), None];
    let money = Decimal128Array::from(money.to_vec()).with_precision_and_scale(38, 10).unwrap();
    let list = [Some(vec![Some(1), None]), Some(vec![]), None];
    let columns: [(&str, ArrayRef); 13] = [
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("small", Arc::new(Int16Array::from(vec![Some(i16::MIN), Some(1), None]))),
        ("whole", Arc::new(Int32Array::from(vec![Some(i32::MAX), Some(1), None]))),
        ("large", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(1), None]))),
        ("single", Arc::new(Float32Array::from(vec![Some(0.1), Some(strange), None]))),
        ("real", Arc::new(Float64Array::from(vec![Some(0.1), Some(endless), None]))),
        ("money", Arc::new(money)),
        ("word", Arc::new(StringArray::from(vec![Some("a\tb\\N\n'\"ü"), Some(""), None]))),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&[0_u8, 92, 255][..]), Some(b""), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(-719_162), Some(19_844), None]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC"))),
        ("wall", Arc::new(TimestampMicrosecondArray::from(micros.to_vec()))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(list))),
    ];
    let columns = columns.map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut sink = open(&server, &options(&url, "all_types"), query()).unwrap();
    write(sink.as_mut(), 0, &batch, OutputMode::Append).unwrap();
    let (sql, expected) = match product {
        Product::Postgres => (
            "SELECT flag, small, whole, large, single, \"real\", money, word, encode(bytes, 'hex'), day, \
             at AT TIME ZONE 'UTC', wall, list FROM all_types ORDER BY whole DESC NULLS LAST",
            [
                "t|-32768|2147483647|-9223372036854775808|0.1|0.1|9999999999999999999999999999.9999999999|a\tb\\N\n'\"ü|005cff|0001-01-01|2024-05-01 12:00:00.123456|2024-05-01 12:00:00.123456|[1, null]",
                "f|1|1|1|NaN|-Infinity|-0.0000000005|||2024-05-01|1969-12-31 23:59:59.999999|1969-12-31 23:59:59.999999|[]",
                "-|-|-|-|-|-|-|-|-|-|1970-01-01 00:00:00|1970-01-01 00:00:00|-",
            ],
        ),
        Product::Mysql => (
            "SELECT flag, small, whole, large, single, `real`, money, word, lower(hex(bytes)), day, \
             at, wall, list FROM all_types ORDER BY whole DESC",
            [
                "1|-32768|2147483647|-9223372036854775808|0.1|0.1|9999999999999999999999999999.9999999999|a\tb\\N\n'\"ü|005cff|0001-01-01|2024-05-01 12:00:00.123456|2024-05-01 12:00:00.123456|[1,null]",
                "0|1|1|1|-1.5|-1e300|-0.0000000005|||2024-05-01|1969-12-31 23:59:59.999999|1969-12-31 23:59:59.999999|[]",
                "-|-|-|-|-|-|-|-|-|-|1970-01-01 00:00:00.000000|1970-01-01 00:00:00.000000|-",
            ],
        ),
    };
    assert_eq!(rows(&url, sql), expected);
}

fn what_does_not_fit_is_refused_before_the_first_batch(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(
        &url,
        &[
            "CREATE TABLE narrow (k integer, v bigint)",
            "CREATE TABLE loose (k varchar(9), v bigint)",
            "CREATE VIEW seen AS SELECT k, v FROM loose",
        ],
    );
    let integer = match product {
        Product::Postgres => "column `k` of type Utf8 does not fit the table's `k integer`",
        Product::Mysql => "column `k` of type Utf8 does not fit the table's `k int(11)`",
    };
    let all = |table: &str| options(&url, table);
    let mut refused = vec![
        (all("narrow"), "SELECT k, v FROM events", integer),
        (all("loose"), "SELECT k, v AS w FROM events", "the table has no column `w`; it has k, v"),
        (all("loose").with("key", "k"), "SELECT k, v FROM events", "no primary key or unique index"),
        (all("nowhere").with("createTable", "false"), "SELECT k, v FROM events", "there is no table `nowhere`"),
        (all("seen"), "SELECT k, v FROM events", "a view"),
    ];
    if product == Product::Mysql {
        execute(&url, &["CREATE TABLE unsafe (k text, v bigint) ENGINE = MyISAM"]);
        refused.push((all("unsafe"), "SELECT k, v FROM events", "MyISAM, which has no transactions"));
    }
    for (options, sql, part) in refused {
        let error = refusal(sql, server.format(), &options);
        assert!(error.contains(part), "{error}");
    }
    let counts = "SELECT k, count(*) AS n FROM events GROUP BY k";
    let story = Story::new(counts, OutputMode::Update, server.format(), &options(&url, "counts"));
    let error = story.run().unwrap_err();
    assert!(error.contains("update"), "{error}");
}

/// Why a query neither starts nor passes a check, in the same words; it has no row yet.
fn refusal(sql: &str, format: &str, options: &Options) -> String {
    let mut story = Story::new(sql, OutputMode::Append, format, options);
    let error = story.open().map(drop).map_err(|error| describe_chain(&error)).unwrap_err();
    let spec = story.spec().clone();
    let checked = inspect::check(&story.world.session, &spec).map(drop);
    assert_eq!(checked.map_err(|error| describe_chain(&error)).unwrap_err(), error);
    assert!(story.world.checkpoint().unwrap().is_none(), "a query that is refused leaves no checkpoint");
    error
}

fn all_that_does_not_fit_is_told_at_once_and_nothing_is_left_behind(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(&url, &["CREATE TABLE narrow (v varchar(9), note varchar(9) NOT NULL)"]);
    let error = refusal("SELECT k, v FROM events", server.format(), &options(&url, "narrow").with("key", "k"));
    for part in ["the table has no column `k`", "column `v` of type Int64", "`note` must have a value", "unique index"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let mut fine = Story::new("SELECT k, v FROM events", OutputMode::Append, server.format(), &options(&url, "new"));
    let spec = fine.spec().clone();
    inspect::check(&fine.world.session, &spec).unwrap();
    assert!(!has_table(&url, "millstream_batches") && !has_table(&url, "new"), "a check writes nothing");
}

fn a_row_without_its_key_is_refused(product: Product) {
    let server = server(product);
    let url = server.database();
    // An index keeps rows with nulls apart, so none would be written over.
    execute(&url, &["CREATE TABLE t (k varchar(9) UNIQUE, v bigint)"]);
    let sql = "SELECT CASE WHEN v > 0 THEN k END AS k, v FROM events";
    let story = Story::new(sql, OutputMode::Append, server.format(), &options(&url, "t").with("key", "k"));
    story.add(&[("a", 1)]);
    story.run().unwrap();
    story.add(&[("b", 2), ("c", 0)]);
    let error = story.run().unwrap_err();
    assert!(error.contains("is of the key, and a row has no value in it"), "{error}");
    assert_eq!(rows(&url, "SELECT k FROM t"), ["a"]);
}

fn rows_of_different_keys_never_meet(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(&url, &["CREATE TABLE t (k varchar(9) PRIMARY KEY, v bigint UNIQUE)"]);
    let options = options(&url, "t").with("key", "k");
    match product {
        Product::Mysql => {
            let error = refusal("SELECT k, v FROM events", server.format(), &options);
            assert!(error.contains("another unique index (v)"), "{error}");
        }
        Product::Postgres => {
            let mut sink = open(&server, &options, query()).unwrap();
            let error = write(sink.as_mut(), 0, &pairs(&[("a", 1), ("b", 1)]), OutputMode::Append).unwrap_err();
            assert!(describe_chain(&error).contains("Key (v)=(1) already exists"), "{}", describe_chain(&error));
        }
    }
}
