use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Analyzer;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;

use super::analyzer::SparkExpressions;
use super::type_name::type_name;
use super::*;
use crate::functions::SparkTypes;

/// A session with this topic's functions, planners and rules, and nothing else of the project.
pub(super) fn context(settings: &SqlSettings) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    let parser = &mut config.options_mut().sql_parser;
    parser.dialect = "spark".parse().unwrap();
    parser.map_string_types_to_utf8view = false;
    parser.parse_float_as_decimal = true;
    let mut rules = analyzer_rules(settings);
    rules.extend(Analyzer::new().rules);
    let mut builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_analyzer_rules(rules)
        .with_type_planner(Arc::new(SparkTypes));
    let planners = builder.expr_planners().take().unwrap_or_default();
    *builder.expr_planners() = Some(expr_planners(settings).into_iter().chain(planners).collect());
    let mut state = builder;
    for rule in optimizer_rules(settings) {
        state = state.with_optimizer_rule(rule);
    }
    let context = SessionContext::new_with_state(state.build());
    for function in scalar_functions(settings) {
        context.register_udf(function.as_ref().clone());
    }
    context
}

/// The plan of a SQL text, not yet analysed.
async fn plan(context: &SessionContext, sql: &str) -> datafusion::error::Result<LogicalPlan> {
    let state = context.state();
    let mut statement = state.sql_to_statement(sql, &state.config_options().sql_parser.dialect)?;
    if let Statement::Statement(statement) = &mut statement {
        spell_literals(statement);
    }
    narrow_literals(state.statement_to_plan(statement).await?)
}

/// The rows of a SQL text, or the error's text.
pub(super) async fn run(context: &SessionContext, sql: &str) -> Result<RecordBatch, String> {
    let rows = async {
        let frame = context.execute_logical_plan(plan(context, sql).await?).await?;
        let schema = frame.clone().create_physical_plan().await?.schema();
        Ok(arrow::compute::concat_batches(&schema, &frame.collect().await?)?)
    };
    rows.await.map_err(|error: datafusion::error::DataFusionError| error.to_string())
}

/// Type and text of the only value.
async fn value(settings: &SqlSettings, expression: &str) -> Result<String, String> {
    let batch = run(&context(settings), &format!("SELECT {expression}")).await?;
    let text = spark_text(batch.column(0)).unwrap();
    let shown = if text.is_null(0) { "NULL" } else { text.value(0) };
    Ok(format!("{} {shown}", type_name(batch.column(0).data_type())))
}

async fn assert_values(ansi: bool, cases: &[(&str, &str)]) {
    let settings = SqlSettings { ansi, ..SqlSettings::default() };
    for (expression, expected) in cases {
        assert_eq!(value(&settings, expression).await.as_deref(), Ok(*expected), "{expression}");
    }
}

async fn assert_errors(cases: &[(&str, &str)]) {
    for (expression, class) in cases {
        let error = value(&SqlSettings::default(), expression).await.expect_err(expression);
        assert!(error.contains(class), "{expression}: {error}");
    }
}

#[tokio::test]
async fn literals_have_the_types_that_they_are_spelled_with() {
    assert_values(
        true,
        &[
            ("1", "int 1"),
            ("1L", "bigint 1"),
            ("3000000000", "bigint 3000000000"),
            ("9223372036854775808", "decimal(19,0) 9223372036854775808"),
            ("1e3", "double 1000.0"),
            ("1.50", "decimal(3,2) 1.50"),
            ("cast(5 AS BIGINT) + 1", "bigint 6"),
        ],
    )
    .await;
}

#[tokio::test]
async fn operators_give_sparks_types() {
    assert_values(
        true,
        &[
            ("1 + 1", "int 2"),
            ("3 / 2", "double 1.5"),
            ("7 DIV 2", "bigint 3"),
            ("-7 % 3", "int -1"),
            ("pmod(-7, 3)", "int 2"),
            ("'1' + 1", "bigint 2"),
            ("-cast('2' AS INT)", "int -2"),
            ("-'2'", "double -2.0"),
            ("int('7') + bigint(1)", "bigint 8"),
            ("string(1.50)", "string 1.50"),
            ("5 & 3 | 8", "int 9"),
            ("~5", "int -6"),
            ("'a' || 1 || true", "string a1true"),
            ("DATE '2024-01-31' + 1", "date 2024-02-01"),
            ("cast(12 AS DECIMAL(3,1)) / 7", "decimal(8,6) 1.714286"),
            ("cast(12 AS DECIMAL(3,1)) * cast(2 AS INT)", "decimal(5,1) 24.0"),
            ("NULL + 1", "int NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn comparisons_bring_their_sides_together() {
    assert_values(
        true,
        &[
            ("1 = '1'", "boolean true"),
            ("1 IN (2, '1')", "boolean true"),
            ("2 BETWEEN '1' AND 3.5", "boolean true"),
            ("'2024-01-01' < DATE '2024-01-02'", "boolean true"),
            ("cast('NaN' AS DOUBLE) = cast('NaN' AS DOUBLE)", "boolean true"),
            ("cast('NaN' AS DOUBLE) > cast('Infinity' AS DOUBLE)", "boolean true"),
            ("cast('-0.0' AS DOUBLE) = cast('0.0' AS DOUBLE)", "boolean true"),
            ("cast('-0.0' AS DOUBLE) IN (cast('0.0' AS DOUBLE))", "boolean true"),
            ("NULL <=> NULL", "boolean true"),
            ("1 IS DISTINCT FROM NULL", "boolean true"),
            ("greatest(1, 2.5, NULL)", "decimal(11,1) 2.5"),
        ],
    )
    .await;
}

#[tokio::test]
async fn branches_are_widened_and_evaluated_only_when_taken() {
    assert_values(
        true,
        &[
            ("if(1 > 2, 1, 2.0)", "decimal(11,1) 2.0"),
            ("coalesce(NULL, 1, 1/0)", "double 1.0"),
            ("nvl(NULL, 'x')", "string x"),
            ("nvl2(NULL, 1, 2L)", "bigint 2"),
            ("ifnull(NULL, 3)", "int 3"),
            ("nullif(1, 1)", "int NULL"),
            ("CASE WHEN false THEN 1/0 ELSE 2 END", "double 2.0"),
            ("false AND 1/0 > 1", "boolean false"),
            ("true OR cast('x' AS INT) = 1", "boolean true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_condition_protects_the_rows_that_it_excludes() {
    let context = context(&SqlSettings::default());
    // A table, so that nothing is folded at planning time.
    let rows = "CREATE TABLE t AS SELECT * FROM (VALUES (0), (2), (4), (NULL), (0)) AS v(b)";
    context.sql(rows).await.unwrap().collect().await.unwrap();
    for (sql, rows) in [
        ("SELECT b FROM t WHERE b <> 0 AND 10 / b > 1", 2),
        ("SELECT b FROM t WHERE b <> 0 AND 10 / b > 3 AND b < 9", 1),
        ("SELECT q FROM (SELECT b, 10 / b AS q FROM t WHERE b <> 0) WHERE q > 1", 2),
        ("SELECT q FROM (SELECT b, 10 / b AS q FROM t WHERE b <> 0) WHERE b < 9 AND q > 3", 1),
        ("SELECT b FROM t WHERE b = 0 OR 10 / b > 100", 2),
        ("SELECT CASE WHEN b <> 0 THEN 10 / b END AS q FROM t", 5),
        ("SELECT b <> 0 AND 10 / b > 1 AS q FROM t", 5),
        ("SELECT b FROM t WHERE CASE WHEN b = 0 THEN false ELSE 10 / b > 3 END", 1),
        ("SELECT if(b = 0, true, 10 / b > 3) AS q FROM t", 5),
    ] {
        assert_eq!(run(&context, sql).await.map(|batch| batch.num_rows()), Ok(rows), "{sql}");
    }
}

#[tokio::test]
async fn rounding_functions_give_sparks_types() {
    assert_values(
        true,
        &[
            ("round(2.567, 2)", "decimal(4,2) 2.57"),
            ("round(1234, -2)", "int 1200"),
            ("bround(2.5)", "decimal(2,0) 2"),
            ("round(7, -2147483648)", "int 0"),
            ("round(2.5, 2147483647)", "decimal(3,1) 2.5"),
            ("round(cast(2.5 AS DOUBLE), -2147483648)", "double 0.0"),
            ("round(cast(2.5 AS DOUBLE))", "double 3.0"),
            ("floor(3.1411, 3)", "decimal(5,3) 3.141"),
            ("ceil(-0.1)", "decimal(1,0) 0"),
            ("ceil(5)", "bigint 5"),
            ("floor(cast(-1.5 AS DOUBLE))", "bigint -2"),
        ],
    )
    .await;
}

#[tokio::test]
async fn mathematics_is_javas() {
    assert_values(
        true,
        &[
            ("log(2, 8)", "double 3.0"),
            ("ln(0)", "double NULL"),
            ("sqrt(-1)", "double NaN"),
            ("sign(-3)", "double -1.0"),
            ("factorial(5)", "bigint 120"),
            ("factorial(21)", "bigint NULL"),
            ("hypot(3, 4)", "double 5.0"),
            ("shiftleft(1, 33)", "int 2"),
            ("shiftrightunsigned(-1, 28)", "int 15"),
            ("isnan(NULL)", "boolean false"),
            ("pi()", "double 3.141592653589793"),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_computed_fails_with_sparks_class() {
    assert_errors(&[
        ("1/0", "[DIVIDE_BY_ZERO]"),
        ("1 % 0", "[DIVIDE_BY_ZERO]"),
        ("cast('x' AS INT)", "[CAST_INVALID_INPUT]"),
        ("'s' = 1", "[CAST_INVALID_INPUT]"),
        ("2147483647 + 1", "[ARITHMETIC_OVERFLOW]"),
        ("abs(cast(-128 AS TINYINT))", "[ARITHMETIC_OVERFLOW]"),
        ("cast(1e10 AS INT)", "[CAST_OVERFLOW]"),
        ("cast(12345 AS DECIMAL(3,1))", "[NUMERIC_VALUE_OUT_OF_RANGE]"),
        ("raise_error('boo')", "[USER_RAISED_EXCEPTION] boo"),
        ("assert_true(1 > 2)", "[USER_RAISED_EXCEPTION]"),
        ("true + 1", "[DATATYPE_MISMATCH"),
        ("cast(DATE '2024-01-01' AS INT)", "[DATATYPE_MISMATCH"),
        ("CASE WHEN true THEN true ELSE 1 END", "[DATATYPE_MISMATCH"),
    ])
    .await;
}

#[tokio::test]
async fn the_try_forms_give_null() {
    assert_values(
        true,
        &[
            ("try_divide(1, 0)", "double NULL"),
            ("try_add(2147483647, 1)", "int NULL"),
            ("try_subtract(-2147483648, 1)", "int NULL"),
            ("try_multiply(9223372036854775807, 2)", "bigint NULL"),
            ("try_mod(1, 0)", "int NULL"),
            ("try_cast('x' AS INT)", "int NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn without_ansi_values_wrap_or_become_null() {
    assert_values(
        false,
        &[
            ("2147483647 + 1", "int -2147483648"),
            ("1/0", "double NULL"),
            ("cast('x' AS INT)", "int NULL"),
            ("cast(300 AS TINYINT)", "tinyint 44"),
            ("abs(cast(-128 AS TINYINT))", "tinyint -128"),
            ("'1' + 1", "double 2.0"),
            ("cast(12345 AS DECIMAL(3,1))", "decimal(3,1) NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_clock_shows_the_batch_that_runs_not_the_one_planned_for() {
    let settings = SqlSettings::default();
    let context = context(&settings);
    settings.batch_time.set_ms(1_000);
    let plan = plan(&context, "SELECT current_timestamp(), now(), current_date()").await.unwrap();
    let frame = context.execute_logical_plan(plan).await.unwrap();
    let planned = frame.create_physical_plan().await.unwrap();
    settings.batch_time.set_ms(86_400_500);
    let batches = datafusion::physical_plan::collect(planned, context.task_ctx()).await.unwrap();
    let texts: Vec<String> =
        batches[0].columns().iter().map(|column| spark_text(column).unwrap().value(0).to_owned()).collect();
    assert_eq!(texts, ["1970-01-02 00:00:00.5", "1970-01-02 00:00:00.5", "1970-01-02"]);
}

#[tokio::test]
async fn zeros_of_both_signs_are_one_group_and_one_distinct_row() {
    let context = context(&SqlSettings::default());
    let table = "(SELECT cast('0.0' AS DOUBLE) AS x UNION ALL SELECT cast('-0.0' AS DOUBLE))";
    for sql in [
        format!("SELECT x, count(*) AS c FROM {table} GROUP BY x"),
        format!("SELECT DISTINCT x FROM {table}"),
        format!(
            "SELECT a.x FROM (SELECT DISTINCT x FROM {table}) AS a JOIN (SELECT cast('-0.0' AS DOUBLE) AS x) AS b ON a.x = b.x"
        ),
    ] {
        assert_eq!(run(&context, &sql).await.map(|batch| batch.num_rows()), Ok(1), "{sql}");
    }
}

#[tokio::test]
async fn columns_of_a_union_are_widened_by_position() {
    let context = context(&SqlSettings::default());
    let batch =
        run(&context, "SELECT x FROM (SELECT 1 AS x UNION ALL SELECT '2' UNION ALL SELECT NULL) WHERE x = 2").await;
    let batch = batch.unwrap();
    assert_eq!((type_name(batch.column(0).data_type()).as_str(), batch.num_rows()), ("bigint", 1));
}

#[tokio::test]
async fn analysing_twice_changes_nothing() {
    let context = context(&SqlSettings::default());
    let rule = SparkExpressions::new(&SqlSettings::default());
    let options = datafusion::config::ConfigOptions::new();
    let sql = "SELECT x, count(*) AS c, sum(cast(y AS INT) + 1) AS s FROM (SELECT cast(1 AS DOUBLE) AS x, '2' AS y) \
               WHERE x > 0 AND 10 / x > 1 AND y IN (1, 2) GROUP BY x";
    let once = rule.analyze(plan(&context, sql).await.unwrap(), &options).unwrap();
    let twice = rule.analyze(once.clone(), &options).unwrap();
    assert_eq!(once.display_indent().to_string(), twice.display_indent().to_string());
}

#[tokio::test]
async fn expressions_of_the_dataframe_api_mean_the_same() {
    use datafusion::prelude::{col, lit};
    let context = context(&SqlSettings::default());
    let frame = context.sql("SELECT cast(2147483647 AS INT) AS a").await.unwrap();
    let sum = frame.clone().select(vec![col("a") + lit(1_i32)]).unwrap().collect().await.unwrap_err();
    assert!(sum.to_string().contains("[ARITHMETIC_OVERFLOW]"), "{sum}");
    let half = frame.select(vec![(lit(1_i32) / lit(2_i32)).alias("q")]).unwrap().collect().await.unwrap();
    assert_eq!(spark_text(half[0].column(0)).unwrap().value(0), "0.5");
}

#[test]
fn a_type_is_named_as_spark_names_it() {
    let list = arrow::datatypes::DataType::new_list(arrow::datatypes::DataType::Decimal128(10, 2), true);
    assert_eq!(type_name(&list), "array<decimal(10,2)>");
}

/// A context that knows the functions of text and of nested values too, and `n` rows of which every second is a time.
async fn times_and_words(n: usize) -> SessionContext {
    let settings = SqlSettings::default();
    let context = context(&settings);
    let text = crate::functions::text::scalar_functions(&settings);
    for function in text.into_iter().chain(crate::functions::nested::scalar_functions(&settings)) {
        context.register_udf(function.as_ref().clone());
    }
    let row = |at: usize| {
        if at.is_multiple_of(2) {
            "('time', '2024-01-01', 'UTC', 1, array(1, 2))"
        } else {
            "('word', 'hello', 'Nowhere', 0, array(1))"
        }
    };
    let rows = (0..n).map(row).collect::<Vec<_>>().join(", ");
    let table = format!("CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS v(kind, text, zone, n, a)");
    context.sql(&table).await.unwrap().collect().await.unwrap();
    context
}

#[tokio::test]
async fn a_condition_protects_rows_whose_texts_are_no_times() {
    let context = times_and_words(8).await;
    for guarded in [
        "year(text) = 2024",
        "month(text) = 1",
        "hour(text) = 0",
        "date_trunc('MONTH', text) IS NOT NULL",
        "date_format(text, 'yyyy') = '2024'",
        "datediff(text, '2023-12-31') = 1",
        "add_months(text, 1) IS NOT NULL",
        "last_day(text) IS NOT NULL",
        "months_between(text, '2024-01-01') = 0",
        "trunc(text, 'MM') IS NOT NULL",
        "unix_seconds(text) > 0",
        "to_date(text) IS NOT NULL",
        "repeat('a', replace(text, '2024-01-01', '1')) = 'a'",
        "from_utc_timestamp('2024-01-01', zone) IS NOT NULL",
        "to_utc_timestamp('2024-01-01', zone) IS NOT NULL",
        "split_part('a,b', ',', n) = 'a'",
        "slice(a, n, 1) IS NOT NULL",
        "array_insert(a, n, 7) IS NOT NULL",
        "encode(text, if(n = 1, 'UTF-8', 'what')) IS NOT NULL",
        "map_concat(map(1, 1), map(n + 1, 1)) IS NOT NULL",
        "regexp_like(text, if(n = 1, '2024.*', '('))",
    ] {
        for (sql, rows) in [
            (format!("SELECT n FROM t WHERE kind = 'time' AND {guarded}"), 4),
            (format!("SELECT n FROM t WHERE kind <> 'time' OR {guarded}"), 8),
            (format!("SELECT n FROM (SELECT * FROM t WHERE kind = 'time') WHERE {guarded}"), 4),
        ] {
            assert_eq!(run(&context, &sql).await.map(|batch| batch.num_rows()), Ok(rows), "{sql}");
        }
    }
    let sql = "SELECT n FROM t WHERE year(text) = 2024";
    assert!(run(&context, sql).await.is_err_and(|error| error.contains("[CAST_INVALID_INPUT]")));
}

#[tokio::test]
async fn what_cannot_fail_needs_no_protection() {
    let context = times_and_words(2).await;
    for sql in [
        "SELECT n FROM t WHERE n = 1 AND left(text, 2) = '20'",
        "SELECT n FROM t WHERE n = 1 AND split_part(text, '-', 2) = '01'",
        "SELECT n FROM t WHERE n = 1 AND regexp_like(text, '2.*')",
        "SELECT n FROM t WHERE n = 1 AND datediff(current_date(), '2024-01-01') > 0",
    ] {
        let plan = context.state().optimize(&plan(&context, sql).await.unwrap()).unwrap();
        assert!(!plan.display_indent().to_string().contains("CASE"), "{sql}: {plan}");
    }
}

#[tokio::test]
async fn levels_of_coalesce_make_one_case() {
    let context = times_and_words(2).await;
    let nested =
        |levels: usize, around: fn(String) -> String| (0..levels).fold("n".to_owned(), |inner, _| around(inner));
    for expression in [
        nested(20, |inner| format!("nvl({inner}, n + 1)")),
        nested(20, |inner| format!("coalesce(CAST({inner} AS BIGINT), n, 2)")),
        nested(20, |inner| format!("nvl(abs({inner}), n)")),
        nested(20, |inner| format!("nullif({inner}, 7)")),
    ] {
        let sql = format!("SELECT {expression} AS v FROM t WHERE n = 1");
        let plan = context.state().optimize(&plan(&context, &sql).await.unwrap()).unwrap();
        let shown = plan.display_indent().to_string();
        assert!(shown.len() < 20_000, "{expression} is {} bytes: {}", shown.len(), &shown[..2_000]);
        let batch = run(&context, &sql).await.unwrap();
        assert_eq!(spark_text(batch.column(0)).unwrap().value(0).trim_end_matches(".0"), "1", "{expression}");
    }
}

#[tokio::test]
async fn a_time_alone_is_on_the_batchs_day() {
    let settings = SqlSettings::default();
    settings.batch_time.set_ms(1_705_000_000_000);
    for (expression, expected) in [
        ("CAST('12:58:59' AS TIMESTAMP)", "timestamp 2024-01-11 12:58:59"),
        ("timestamp('12:58:59')", "timestamp 2024-01-11 12:58:59"),
        ("timestamp(DATE '2024-02-01')", "timestamp 2024-02-01 00:00:00"),
        ("timestamp(NULL)", "timestamp NULL"),
    ] {
        assert_eq!(value(&settings, expression).await.as_deref(), Ok(expected), "{expression}");
    }
}
