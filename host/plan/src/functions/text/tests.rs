//! Every function through SQL: parsed, rewritten, planned and run.

use std::ops::ControlFlow;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{Expr, visit_expressions_mut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use millstream_common::SqlSettings;

use super::{expr_planners, rewrite_ast_expr, scalar_functions, unescape_literal};

fn session(ansi: bool) -> SessionContext {
    session_with(&SqlSettings { ansi, ..SqlSettings::default() })
}

fn session_with(settings: &SqlSettings) -> SessionContext {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let mut planners = expr_planners(settings);
    planners.extend(state.expr_planners().to_vec());
    let state = SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
    let session = SessionContext::new_with_state(state);
    for function in scalar_functions(settings) {
        session.register_udf(function.as_ref().clone());
    }
    session
}

/// The value of an expression as text, or the error.
fn value(session: &SessionContext, sql: &str) -> Result<String, String> {
    let text = |e: datafusion::error::DataFusionError| e.to_string();
    let sql = format!("SELECT {sql} AS x");
    let dialect = GenericDialect {};
    let mut parser = DFParserBuilder::new(sql.as_str()).with_dialect(&dialect).build().map_err(text)?;
    let mut statements = parser.parse_statements().map_err(text)?;
    let mut statement = statements.pop_front().unwrap();
    if let Statement::Statement(statement) = &mut statement {
        let _ = visit_expressions_mut(statement.as_mut(), |expr: &mut Expr| {
            unescape_literal(expr);
            rewrite_ast_expr(expr);
            ControlFlow::<()>::Continue(())
        });
    }
    let batches = futures::executor::block_on(async {
        let plan = session.state().statement_to_plan(statement).await?;
        session.execute_logical_plan(plan).await?.collect().await
    })
    .map_err(text)?;
    let column = batches[0].column(0);
    let options = FormatOptions::default().with_null("null");
    Ok(ArrayFormatter::try_new(column, &options).unwrap().value(0).to_string())
}

/// Expected values; `ERR` and a part of the message for errors.
fn check(ansi: bool, expected: &[(&str, &str)]) {
    let session = session(ansi);
    let mut wrong = Vec::new();
    for (sql, expected) in expected {
        let given = value(&session, sql);
        let right = match &given {
            Ok(given) => given == expected,
            Err(message) => expected.strip_prefix("ERR ").is_some_and(|part| message.contains(part)),
        };
        if !right {
            wrong.push(format!("{sql}: {given:?} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strings_hashes_and_numbers_have_spark_s_values() {
    check(true, STRINGS);
}

#[test]
fn patterns_have_spark_s_values() {
    check(true, PATTERNS);
}

#[test]
fn dates_and_timestamps_have_spark_s_values() {
    check(true, TIMES);
}

#[test]
fn without_ansi_mode_what_cannot_be_is_null() {
    check(
        false,
        &[
            ("year('x')", "null"),
            ("to_date('x')", "null"),
            ("to_date('x', 'yyyy')", "null"),
            ("next_day('2015-01-14', 'xx')", "null"),
            ("elt(3, 'a')", "null"),
            ("make_date(2019, 13, 1)", "null"),
            ("unbase64('Y')", "null"),
            ("substring('abc', 'x')", "null"),
        ],
    );
}

const STRINGS: &[(&str, &str)] = &[
    ("locate('a', 'abc', NULL)", "0"),
    ("concat(unhex('4A'), unhex('6F'))", "4a6f"),
    ("lpad(unhex('0102'), 4)", "00000102"),
    ("substring(unhex('010203'), -2)", "0203"),
    ("hex(-1)", "FFFFFFFFFFFFFFFF"),
    ("hex(0)", "0"),
    ("unhex('F')", "0f"),
    ("concat(1.0E10, '')", "1.0E10"),
    ("concat(TIMESTAMP'2024-01-01 10:00:00.50', '|', DATE'2024-01-01')", "2024-01-01 10:00:00.5|2024-01-01"),
    ("lpad('hi', 5, '??')", "???hi"),
    ("lpad('hi', 1, '??')", "h"),
    ("lpad('hi', 5, '')", "hi"),
    ("rpad('日本', 4, 'x')", "日本xx"),
    ("lpad('hi', -1, 'x')", ""),
    ("substring('Spark SQL', 5)", "k SQL"),
    ("substring('Spark SQL' FROM 5 FOR 1)", "k"),
    ("substr('Spark SQL', -3)", "SQL"),
    ("left(12345, 2)", "12"),
    ("concat('a', 1, true)", "a1true"),
    ("concat('a', NULL)", "null"),
    ("concat()", ""),
    ("concat_ws(',', 'a', 1.5, NULL)", "a,1.5"),
    ("concat_ws(',', make_array('a', NULL, 'b'), 'c')", "a,b,c"),
    ("concat_ws('s')", ""),
    ("elt(2, 'a', 'b')", "b"),
    ("elt(3, 'a', 'b')", "ERR INVALID_ARRAY_INDEX"),
    ("find_in_set('ab', 'abc,b,ab,c,def')", "3"),
    ("find_in_set('a,b', 'a,b')", "0"),
    ("format_number(12332.123456, 4)", "12,332.1235"),
    ("format_number(12332.123456, '##################.###')", "12332.123"),
    ("format_number(-0.5, 0)", "-0"),
    ("format_number(1234567, 0)", "1,234,567"),
    ("format_number(5, -1)", "null"),
    ("format_string('Hello %s %d', 'a', 5)", "Hello a 5"),
    (
        "format_string('%s|%s|%s', CAST(-9876.543 AS DECIMAL(10,3)), CAST(1e10 AS DOUBLE), true)",
        "-9876.543|1.0E10|true",
    ),
    ("printf('%5s|%-5s|%S|%.2f', 'é日x', 'é日x', 'é日x', CAST(1.005 AS DOUBLE))", "  é日x|é日x  |É日X|1.01"),
    ("format_string('%2$s %1$s %s', 'a', 'b')", "b a a"),
    ("format_string('%s', CAST(NULL AS STRING))", "null"),
    ("overlay('Spark SQL' PLACING '_' FROM 6)", "Spark_SQL"),
    ("overlay('Spark SQL' PLACING 'tructured' FROM 2 FOR 4)", "Structured SQL"),
    ("replace('ABCabc', 'abc')", "ABC"),
    ("translate('AaBbCc', 'abc', '123')", "A1B2C3"),
    ("translate('aab', 'aa', '12')", "11b"),
    ("trim('SL', 'SSparkSQLS')", "parkSQ"),
    ("trim(BOTH 'SL' FROM 'SSparkSQLS')", "parkSQ"),
    ("btrim('SSparkSQLS', 'SL')", "parkSQ"),
    ("ltrim('Sp', 'SSparkSQLS')", "arkSQLS"),
    ("rtrim('LQSa', 'SSparkSQLS')", "SSpark"),
    ("split_part('11.12.13', '.', 3)", "13"),
    ("split_part('11.12.13', '.', 5)", ""),
    ("split_part('11.12.13', '.', 0)", "ERR INVALID_INDEX_OF_ZERO"),
    ("substring_index('www.apache.org', '.', 2)", "www.apache"),
    ("substring_index('www.apache.org', '.', -2)", "apache.org"),
    ("mask('abcd-EFGH-8765-4321')", "xxxx-XXXX-nnnn-nnnn"),
    ("mask('abcd-EFGH', NULL, 'q', 'd', 'o')", "qqqqoEFGH"),
    ("initcap('sPark sql')", "Spark Sql"),
    ("char(65)", "A"),
    ("chr(-1)", ""),
    ("ascii(2)", "50"),
    ("base64('Spark SQL')", "U3BhcmsgU1FM"),
    ("hex(17)", "11"),
    ("hex('Spark SQL')", "537061726B2053514C"),
    ("decode(unhex('537061726B2053514C'), 'UTF-8')", "Spark SQL"),
    ("unhex('zz')", "null"),
    ("decode(2, 1, 'Southlake', 2, 'San Francisco', 'x')", "San Francisco"),
    ("decode(NULL, 6, 'Spark', NULL, 'SQL')", "SQL"),
    ("decode(encode('abc', 'utf-16'), 'utf-16')", "abc"),
    ("unbase64('Y')", "ERR CONVERSION_INVALID_INPUT"),
    ("levenshtein('kitten', 'sitting', 2)", "-1"),
    ("locate('bar', 'foobarbar', 5)", "7"),
    ("position('bar' IN 'foobarbar')", "4"),
    ("position('bar', 'foobarbar')", "4"),
    ("repeat('123', 2)", "123123"),
    ("repeat('x', 2000000000)", "ERR COLLECTION_SIZE_LIMIT_EXCEEDED"),
    ("space(2) || '1'", "  1"),
    ("md5('Spark')", "8cde774d6f7333752ed72cacddb05126"),
    ("sha2('Spark', 256)", "529bc3b07127ecb7e53a4dcf1991d9152c24537d919178022b2c42657f79a26b"),
    ("sha2('Spark', 1)", "null"),
    ("sha1('Spark')", "85f5955f4b27a9a4c2aab6ffe5d7189fc298b92c"),
    ("crc32('Spark')", "1557323817"),
    ("hash('Spark', arrow_cast(make_array(123), 'List(Int32)'), arrow_cast(2, 'Int32'))", "-1321691492"),
    ("xxhash64('Spark', arrow_cast(make_array(123), 'List(Int32)'), arrow_cast(2, 'Int32'))", "5602566077635097486"),
    ("make_date(2013, 7, 15)", "2013-07-15"),
    ("make_date(2019, 13, 1)", "ERR DATETIME_FIELD_OUT_OF_BOUNDS"),
    ("parse_url('http://spark.apache.org/path?query=1', 'HOST')", "spark.apache.org"),
    ("parse_url('http://spark.apache.org/path?query=1', 'QUERY', 'query')", "1"),
    ("parse_url('HTTP://u:p@Ex.COM:80/a?x=%26&k=', 'AUTHORITY')", "u:p@Ex.COM:80"),
    ("parse_url('HTTP://Ex.COM', 'PROTOCOL') || parse_url('HTTP://Ex.COM', 'HOST')", "HTTPEx.COM"),
    ("parse_url('http://h/a?x=%26&k=', 'FILE') || parse_url('http://h/a?x=%26&k=', 'QUERY', 'x')", "/a?x=%26&k=%26"),
    ("parse_url('http://h?k=', 'HOST', 'k')", "null"),
    ("parse_url('http://h?k=', 'host')", "null"),
    ("parse_url('mailto:a@b.c', 'PATH')", "null"),
    ("parse_url('http://h/a b', 'HOST')", "ERR INVALID_URL"),
    ("try_parse_url('http://h/a b', 'HOST')", "null"),
    ("url_encode('https://a b')", "https%3A%2F%2Fa+b"),
    ("url_decode('https%3A%2F%2Fspark')", "https://spark"),
    ("ltrim('a','b','c')", "ERR WRONG_NUM_ARGS"),
    ("levenshtein(NULL, 'a')", "null"),
    ("octet_length('日本')", "6"),
    ("bit_length('日')", "24"),
];

const PATTERNS: &[(&str, &str)] = &[
    (r"'a%b' LIKE 'a\\%b'", "true"),
    ("'a' LIKE 'A'", "false"),
    ("'abc' ILIKE 'A_C'", "true"),
    ("'50%' LIKE '%#%' ESCAPE '#'", "true"),
    ("'ab' NOT LIKE 'a_'", "false"),
    (r"'ab' LIKE 'a\\b'", "ERR ESC_IN_THE_MIDDLE"),
    ("'foo' LIKE ANY ('x%', 'f%')", "true"),
    ("'foo' NOT LIKE ANY ('x%', 'f%')", "true"),
    ("'foo' NOT LIKE ANY ('f%', '%o')", "false"),
    ("bin(13)", "1101"),
    ("bin(-1)", "1111111111111111111111111111111111111111111111111111111111111111"),
    ("to_char(DATE'2024-05-01', 'yyyy-MM')", "2024-05"),
    ("to_varchar(TIMESTAMP'2024-05-01 10:00:00', 'HH:mm')", "10:00"),
    ("equal_null(NULL, 1)", "false"),
    ("equal_null(NULL, NULL)", "true"),
    ("equal_null(1, 1)", "true"),
    ("'abc' RLIKE '^a.c$'", "true"),
    (r"regexp_like('a1', '\\d')", "true"),
    (r"regexp_extract('100-200', '(\\d+)-(\\d+)')", "100"),
    (r"regexp_extract('100-200', '(\\d+)', 3)", "ERR REGEX_GROUP_INDEX"),
    (r"regexp_replace('100-200', '(\\d+)', 'num')", "num-num"),
    (r"regexp_replace('100-200', '(\\d+)', 'num', 4)", "100-num"),
    ("regexp_count('Steven Jones and Stephen Smith', 'Ste(v|ph)en')", "2"),
    ("regexp_instr('user@spark.apache.org', '@[^.]*')", "5"),
    ("regexp_extract('a', '(?=a)')", "ERR look-ahead"),
    ("split('oneAtwoBthreeC', '[ABC]', 2)", "[one, twoBthreeC]"),
    ("split('a||b', '|')", "[a, |, |, b, ]"),
    ("split('a.b.', '.')", "[, , , , ]"),
    ("split('a.b.', '[.]')", "[a, b, ]"),
    (r"regexp_extract('x', '(a)', 9)", ""),
    ("regexp_extract_all('100-200', '([0-9]+)-([0-9]+)', 2)", "[200]"),
    ("regexp_substr('abc', '[x-z]')", "null"),
    ("'a' RLIKE 'b|a'", "true"),
    ("NULL LIKE 'a'", "null"),
    ("array_to_string(split('', ' '), ',')", ""),
];

const TIMES: &[(&str, &str)] = &[
    ("date_trunc('HOUR', timestamp_micros(-9223372036854775808))", "ERR DATETIME_OVERFLOW"),
    ("extract(DAY FROM INTERVAL '2000000000 days')", "ERR DATETIME_OVERFLOW"),
    ("to_date('999999999999999999-001', 'y-DDD')", "ERR CANNOT_PARSE_TIMESTAMP"),
    ("DATE'2024-01-31' + 2147483647", "ERR DATETIME_OVERFLOW"),
    ("add_months(DATE'2024-01-31', 2147483647)", "ERR DATETIME_OVERFLOW"),
    ("timestampadd(YEAR, 9223372036854775807, TIMESTAMP'2024-01-31 00:00:00')", "ERR DATETIME_OVERFLOW"),
    ("timestampadd(DAY, 9223372036854775807, TIMESTAMP'2024-01-31 00:00:00')", "ERR DATETIME_OVERFLOW"),
    ("make_timestamp(294247, 1, 10, 4, 0, 54.775808)", "ERR DATETIME_OVERFLOW"),
    ("date_add('2016-07-30', 1)", "2016-07-31"),
    ("date_add(DATE'2016-07-30', -1)", "2016-07-29"),
    ("datediff('2009-07-31', '2009-07-30')", "1"),
    ("DATE'2024-01-31' + 1", "2024-02-01"),
    ("DATE'2024-01-31' - 31", "2023-12-31"),
    ("DATE'2024-01-31' + INTERVAL '1 month'", "2024-02-29"),
    ("DATE'2024-01-31' + INTERVAL '2 hours'", "2024-01-31T02:00:00Z"),
    ("DATE'2024-01-31' - INTERVAL '1 day'", "2024-01-30"),
    ("(DATE'2024-01-31' - DATE'2024-01-30') = INTERVAL '1 day'", "true"),
    ("(TIMESTAMP'2024-01-31 00:00:00' - TIMESTAMP'2024-01-29 00:00:00') > INTERVAL '47 hours'", "true"),
    ("TIMESTAMP'2024-01-31 00:00:00' - INTERVAL '1 month'", "2023-12-31T00:00:00Z"),
    ("extract(DAY FROM TIMESTAMP'2024-01-31 05:00:00' - TIMESTAMP'2024-01-29 00:00:00')", "2"),
    ("extract(DOW FROM DATE'2024-01-31')", "4"),
    ("extract(DAYOFWEEK_ISO FROM DATE'2024-01-31')", "3"),
    ("extract(HOUR FROM DATE'2024-01-31')", "0"),
    ("date_part('WEEK', TIMESTAMP'2019-08-12 01:00:00.123456')", "33"),
    ("date_part('seconds', TIMESTAMP'2019-10-01 00:00:01.000001')", "1.000001"),
    ("date_part('nonsense', TIMESTAMP'2019-10-01 00:00:01.000001')", "ERR INVALID_EXTRACT_FIELD"),
    ("date_part('month', INTERVAL '2 years 3 months')", "3"),
    ("year('2016-07-30')", "2016"),
    ("next_day('2015-01-14', 'TU')", "2015-01-20"),
    ("next_day('2015-01-14', 'xx')", "ERR ILLEGAL_DAY_OF_WEEK"),
    ("trunc('2019-08-04', 'week')", "2019-07-29"),
    ("trunc('2019-08-04', 'day')", "null"),
    ("date_trunc('MM', '2015-03-05T09:32:05.359')", "2015-03-01T00:00:00Z"),
    ("date_trunc('MILLISECOND', TIMESTAMP'2015-03-05 09:32:05.123456')", "2015-03-05T09:32:05.123Z"),
    ("date_trunc('xx', TIMESTAMP'2015-03-05 09:32:05.123456')", "null"),
    ("months_between('1997-02-28 10:30:00', '1996-10-30')", "3.94959677"),
    ("months_between('1997-02-28 10:30:00', '1996-10-30', false)", "3.9495967741935485"),
    ("make_timestamp(2014, 12, 28, 6, 30, 45.887)", "2014-12-28T06:30:45.887Z"),
    ("make_timestamp(2014, 12, 28, 6, 30, 45.887, 'CET')", "2014-12-28T05:30:45.887Z"),
    ("make_timestamp(2019, 6, 30, 23, 59, 60)", "2019-07-01T00:00:00Z"),
    ("make_timestamp(2019, 6, 30, 23, 59, 61)", "ERR DATETIME_FIELD_OUT_OF_BOUNDS"),
    ("try_make_timestamp(2019, 13, 30, 23, 59, 1)", "null"),
    ("to_date('2016-12-31', 'yyyy-MM-dd')", "2016-12-31"),
    ("to_date('2009-07-30 04:17:52')", "2009-07-30"),
    ("to_date('x')", "ERR CAST_INVALID_INPUT"),
    ("to_date('31/12/2016', 'yyyy-MM-dd')", "ERR CANNOT_PARSE_TIMESTAMP"),
    ("to_timestamp('2016-12-31 00:12:00')", "2016-12-31T00:12:00Z"),
    ("to_timestamp('31.12.16 7:05 PM', 'dd.MM.yy h:mm a')", "2016-12-31T19:05:00Z"),
    ("to_timestamp(DATE'2024-01-01')", "2024-01-01T00:00:00Z"),
    ("try_to_timestamp('foo', 'yyyy-MM-dd')", "null"),
    ("date_format('2016-04-08', 'y')", "2016"),
    ("date_format('2016-04-08', 'YYYY')", "ERR DATETIME_WEEK_BASED_PATTERN"),
    ("from_unixtime(0, 'yyyy-MM-dd HH:mm:ss')", "1970-01-01 00:00:00"),
    ("unix_timestamp('2016-04-08', 'yyyy-MM-dd')", "1460073600"),
    ("to_unix_timestamp('2016-04-08', 'yyyy-MM-dd')", "1460073600"),
    ("unix_timestamp('2016-04-08 00:00:01')", "1460073601"),
    ("unix_date(DATE'1970-01-02')", "1"),
    ("date_from_unix_date(1)", "1970-01-02"),
    ("timestamp_seconds(1230219000.123)", "2008-12-25T15:30:00.123Z"),
    ("timestamp_millis(1230219000123)", "2008-12-25T15:30:00.123Z"),
    ("timestamp_seconds(9223372036854775807)", "ERR ARITHMETIC_OVERFLOW"),
    ("from_utc_timestamp('2016-08-31', 'Asia/Seoul')", "2016-08-31T09:00:00Z"),
    ("to_utc_timestamp('2016-08-31', 'Asia/Seoul')", "2016-08-30T15:00:00Z"),
    ("from_utc_timestamp('2016-08-31', 'nowhere')", "ERR INVALID_TIMEZONE"),
    ("from_utc_timestamp('2016-08-31', 'PST')", "2016-08-30T17:00:00Z"),
    ("from_utc_timestamp('2016-08-31', 'EST')", "2016-08-30T19:00:00Z"),
    ("to_timestamp('2024-03-10 02:30:00 America/New_York')", "2024-03-10T07:30:00Z"),
    ("to_timestamp('2024-03-10 09:00:00 JST')", "2024-03-10T00:00:00Z"),
    ("timestampadd(HOUR, 8, TIMESTAMP'2022-02-11 20:30:00')", "2022-02-12T04:30:00Z"),
    ("dateadd(MONTH, 1, DATE'2022-01-31')", "2022-02-28T00:00:00Z"),
    ("timestampdiff(MONTH, TIMESTAMP'2024-01-31 12:00:00', TIMESTAMP'2024-03-01 10:00:00')", "0"),
    ("timestampdiff(YEAR, TIMESTAMP'2024-01-31 12:00:00', TIMESTAMP'2020-01-31 12:00:00')", "-4"),
    ("timestampadd(FORTNIGHT, 8, TIMESTAMP'2022-02-11 20:30:00')", "ERR DATETIME_UNIT"),
    ("monthname('2008-02-20')", "Feb"),
    ("dayname(DATE'2008-02-20')", "Wed"),
    ("DATE'2024-13-01'", "ERR INVALID_TYPED_LITERAL"),
    ("last_day('x')", "ERR CAST_INVALID_INPUT"),
];

#[test]
fn times_without_a_date_are_on_the_batchs_day() {
    let settings = SqlSettings::default();
    settings.batch_time.set_ms(1_705_000_000_000);
    let session = session_with(&settings);
    for (sql, expected) in [
        ("hour('12:58:59')", "12"),
        ("minute('T12:58:59')", "58"),
        ("to_timestamp('12:58:59')", "2024-01-11T12:58:59Z"),
        ("TIMESTAMP'12:58:59'", "2024-01-11T12:58:59Z"),
        ("date_trunc('HOUR', '12:58:59')", "2024-01-11T12:00:00Z"),
    ] {
        assert_eq!(value(&session, sql).as_deref(), Ok(expected), "{sql}");
    }
}
