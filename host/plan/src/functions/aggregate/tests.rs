//! Properties that every aggregate must have, and values that Spark gives.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray, UInt32Array};
use arrow::array::{Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::executor::block_on;
use millstream_common::SqlSettings;

use super::aggregate_functions;

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(5) > 0).then(|| value(self))
    }
}

fn rows(chance: &mut Chance, count: usize) -> RecordBatch {
    fn column<T, A: FromIterator<Option<T>>>(chance: &mut Chance, count: usize, value: impl Fn(&mut Chance) -> T) -> A {
        (0..count).map(|_| chance.maybe(&value)).collect()
    }
    let special = |chance: &mut Chance| match chance.below(8) {
        0 => f64::NAN,
        1 => -0.0,
        2 => f64::INFINITY,
        other => other as f64 - 4.5,
    };
    let decimals: Decimal128Array = column(chance, count, |c| i128::from(c.below(2_000_000)) - 1_000_000);
    let texts: StringArray = column(chance, count, |c| ["", "a", "b", "ä", "zz"][c.below(5) as usize].to_owned());
    let times: TimestampMicrosecondArray = column(chance, count, |c| c.below(5_000) as i64 * 1_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("b", Arc::new(column::<_, BooleanArray>(chance, count, |c| c.below(2) == 0))),
        ("i", Arc::new(column::<_, Int64Array>(chance, count, |c| c.below(40) as i64 - 20))),
        ("o", Arc::new(column::<_, Int32Array>(chance, count, |c| c.below(6) as i32))),
        ("f", Arc::new(column::<_, Float64Array>(chance, count, special))),
        ("x", Arc::new(column::<_, Float64Array>(chance, count, |c| c.below(1_000) as f64 / 8.0))),
        ("y", Arc::new(column::<_, Float64Array>(chance, count, |c| c.below(1_000) as f64 / 3.0))),
        ("d", Arc::new(decimals.with_precision_and_scale(9, 2).unwrap())),
        ("s", Arc::new(texts)),
        ("t", Arc::new(times.with_timezone("UTC"))),
    ];
    let number: ArrayRef = Arc::new(column::<_, Float64Array>(chance, count, special));
    let word: ArrayRef = Arc::new(column::<_, StringArray>(chance, count, |c| ["p", "q"][c.below(2) as usize]));
    let fields = vec![Field::new("n", DataType::Float64, true), Field::new("w", DataType::Utf8, true)];
    let nulls = (0..count).map(|_| chance.below(6) > 0).collect::<Vec<bool>>();
    let both = StructArray::try_new(fields.into(), vec![number, word], Some(nulls.into())).unwrap();
    let all = columns.into_iter().chain([("st", Arc::new(both) as ArrayRef)]);
    RecordBatch::try_from_iter_with_nullable(all.map(|(name, array)| (name, array, true))).unwrap()
}

enum Arg {
    Column(&'static str),
    Value(ScalarValue),
}

fn function(name: &str, args: &[Arg], schema: &SchemaRef) -> AggregateFunctionExpr {
    let all = aggregate_functions(&SqlSettings::default());
    let function = all.into_iter().find(|function| function.name() == name).unwrap();
    let exprs = args.iter().map(|arg| match arg {
        Arg::Column(name) => Arc::new(Column::new_with_schema(name, schema).unwrap()) as Arc<dyn PhysicalExpr>,
        Arg::Value(value) => Arc::new(Literal::new(value.clone())),
    });
    AggregateExprBuilder::new(function, exprs.collect()).schema(Arc::clone(schema)).alias(name).build().unwrap()
}

fn calls() -> Vec<(&'static str, Vec<Arg>)> {
    use Arg::{Column, Value};
    let double = |value: f64| Value(ScalarValue::Float64(Some(value)));
    let doubles = |values: &[f64]| {
        let values: Vec<ScalarValue> = values.iter().map(|value| ScalarValue::Float64(Some(*value))).collect();
        Value(ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float64)))
    };
    let mut calls = vec![
        ("count", vec![Column("i"), Column("s")]),
        ("count_if", vec![Column("b")]),
        ("regr_count", vec![Column("x"), Column("y")]),
        ("first", vec![Column("s"), Value(ScalarValue::Boolean(Some(true)))]),
        ("percentile", vec![Column("x"), double(0.3)]),
        ("percentile", vec![Column("f"), doubles(&[0.0, 0.5, 0.99])]),
        ("percentile_disc", vec![Column("x"), double(0.7)]),
        ("percentile_approx", vec![Column("i"), doubles(&[0.1, 0.9])]),
        ("percentile_approx", vec![Column("t"), double(0.5)]),
        ("percentile_approx", vec![Column("d"), double(0.5)]),
        ("approx_count_distinct", vec![Column("x"), double(0.2)]),
        ("approx_count_distinct", vec![Column("st")]),
        ("median", vec![Column("x")]),
        ("listagg", vec![Column("s"), Value(ScalarValue::from(","))]),
        ("listagg", vec![Column("i")]),
    ];
    for name in ["sum", "try_sum", "avg", "try_avg"] {
        calls.extend(["d", "x", "f"].map(|column| (name, vec![Column(column)])));
    }
    calls.extend(["sum", "try_sum", "bit_and", "bit_or", "bit_xor"].map(|name| (name, vec![Column("i")])));
    calls.extend(["bool_and", "bool_or"].map(|name| (name, vec![Column("b")])));
    for name in ["min", "max", "first", "last", "any_value", "collect_list", "collect_set", "mode", "count"] {
        calls.extend(["b", "i", "o", "f", "d", "s", "t", "st"].map(|column| (name, vec![Column(column)])));
    }
    for name in ["min_by", "max_by"] {
        calls.extend(["o", "f", "s", "st"].map(|order| (name, vec![Column("s"), Column(order)])));
        calls.push((name, vec![Column("st"), Column("i")]));
    }
    for name in ["stddev", "stddev_pop", "variance", "var_pop", "skewness", "kurtosis"] {
        calls.extend(["x", "f"].map(|column| (name, vec![Column(column)])));
    }
    for name in [
        "covar_samp",
        "covar_pop",
        "corr",
        "regr_avgx",
        "regr_avgy",
        "regr_slope",
        "regr_intercept",
        "regr_r2",
        "regr_sxx",
        "regr_syy",
        "regr_sxy",
    ] {
        calls.push((name, vec![Column("x"), Column("y")]));
    }
    calls.extend(["b", "i", "o", "f", "d", "s", "t"].map(|column| ("approx_count_distinct", vec![Column(column)])));
    calls
}

fn inputs(function: &AggregateFunctionExpr, batch: &RecordBatch) -> Vec<ArrayRef> {
    let count = batch.num_rows();
    function.expressions().iter().map(|e| e.evaluate(batch).unwrap().into_array(count).unwrap()).collect()
}

fn text(array: &dyn Array) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(array, &options).unwrap();
    (0..array.len()).map(|row| formatter.value(row).to_string()).collect()
}

/// Equality up to the last digits of doubles.
fn close(left: &ArrayRef, right: &ArrayRef) -> bool {
    if left.data_type() != right.data_type() || left.len() != right.len() {
        return false;
    }
    if left.data_type() == &DataType::Float64 {
        let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
        return left.iter().zip(right).all(|pair| match pair {
            (Some(a), Some(b)) => {
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
            }
            (a, b) => a.is_none() && b.is_none(),
        });
    }
    text(left) == text(right)
}

/// What the store does: the state as rows of bytes and back, with the declared types.
fn stored(function: &AggregateFunctionExpr, state: &[ArrayRef]) -> Vec<ArrayRef> {
    let fields = function.state_fields().unwrap();
    let declared: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
    let found: Vec<DataType> = state.iter().map(|array| array.data_type().clone()).collect();
    assert_eq!(declared, found, "state types of {}", function.name());
    let converter = RowConverter::new(declared.into_iter().map(SortField::new).collect()).unwrap();
    let rows = converter.convert_columns(state).unwrap();
    converter.convert_rows(rows.iter()).unwrap()
}

fn arrays(scalars: Vec<ScalarValue>) -> Vec<ArrayRef> {
    scalars.into_iter().map(|scalar| scalar.to_array().unwrap()).collect()
}

fn cut(chance: &mut Chance, batch: &RecordBatch) -> Vec<RecordBatch> {
    let mut parts = vec![];
    let mut start = 0;
    while start < batch.num_rows() {
        let length = (chance.below(30) as usize).min(batch.num_rows() - start);
        parts.push(batch.slice(start, length));
        start += length;
    }
    parts.push(batch.slice(0, 0));
    parts
}

fn one_shot(function: &AggregateFunctionExpr, batch: &RecordBatch) -> ArrayRef {
    let mut accumulator = function.create_accumulator().unwrap();
    accumulator.update_batch(&inputs(function, batch)).unwrap();
    let result = accumulator.evaluate().unwrap().to_array().unwrap();
    assert_eq!(result.data_type(), function.field().data_type(), "result type of {}", function.name());
    result
}

#[test]
fn a_state_stored_between_batches_gives_the_result_of_one_batch() {
    let mut chance = Chance(7);
    for size in [0, 1, 2, 17, 200] {
        let batch = rows(&mut chance, size);
        for (name, args) in calls() {
            let function = function(name, &args, &batch.schema());
            let expected = one_shot(&function, &batch);
            let mut state: Option<Vec<ArrayRef>> = None;
            for (number, part) in cut(&mut chance, &batch).iter().enumerate() {
                let mut accumulator = function.create_accumulator().unwrap();
                let values = inputs(&function, part);
                if let Some(state) = &state {
                    accumulator.merge_batch(state).unwrap();
                }
                accumulator.update_batch(&values).unwrap();
                let new = stored(&function, &arrays(accumulator.state().unwrap()));
                let mut again = function.create_accumulator().unwrap();
                again.merge_batch(&new).unwrap();
                let same = arrays(again.state().unwrap());
                assert!(new.iter().zip(&same).all(|(a, b)| text(a) == text(b)), "{name} {number}: {new:?} {same:?}");
                state = Some(new);
            }
            let mut last = function.create_accumulator().unwrap();
            last.merge_batch(&state.unwrap()).unwrap();
            let found = last.evaluate().unwrap().to_array().unwrap();
            assert!(close(&found, &expected), "{name} of {size} rows: {found:?} is not {expected:?}");
            let twice = last.evaluate().unwrap().to_array().unwrap();
            assert!(close(&twice, &expected), "{name} of {size} rows, read twice: {twice:?} is not {expected:?}");
        }
    }
}

fn grouped(function: &Arc<AggregateFunctionExpr>) -> Box<dyn GroupsAccumulator> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator().unwrap();
    }
    let function = Arc::clone(function);
    Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator()))
}

#[test]
fn groups_with_stored_states_give_the_results_of_each_group_alone() {
    const GROUPS: usize = 5;
    let mut chance = Chance(11);
    let batch = rows(&mut chance, 300);
    let mut columnar = 0;
    for (name, args) in calls() {
        let function = function(name, &args, &batch.schema());
        columnar += usize::from(function.groups_accumulator_supported());
        let function = Arc::new(function);
        // Group 4 has no rows; the filter lets two thirds pass.
        let group_of = |row: usize| row * 7 % 4;
        let passes = |row: usize| !row.is_multiple_of(3);
        let mut state: Option<Vec<ArrayRef>> = None;
        let mut start = 0;
        for part in cut(&mut chance, &batch) {
            let range = start..start + part.num_rows();
            let groups: Vec<usize> = range.clone().map(group_of).collect();
            let filter: BooleanArray = range.map(|row| Some(passes(row))).collect();
            start += part.num_rows();
            let mut accumulator = grouped(&function);
            if let Some(state) = &state {
                accumulator.merge_batch(state, &[0, 1, 2, 3, 4], GROUPS).unwrap();
            }
            accumulator.update_batch(&inputs(&function, &part), &groups, Some(&filter), GROUPS).unwrap();
            state = Some(stored(&function, &accumulator.state(EmitTo::All).unwrap()));
        }
        let mut last = grouped(&function);
        last.merge_batch(&state.unwrap(), &[0, 1, 2, 3, 4], GROUPS).unwrap();
        let first = last.evaluate(EmitTo::First(2)).unwrap();
        let rest = last.evaluate(EmitTo::All).unwrap();
        for group in 0..GROUPS {
            let chosen: Vec<u32> = (0..batch.num_rows() as u32)
                .filter(|&row| group_of(row as usize) == group && passes(row as usize))
                .collect();
            let chosen = UInt32Array::from(chosen);
            let columns = batch.columns().iter().map(|column| take(column, &chosen, None).unwrap()).collect();
            let alone = one_shot(&function, &RecordBatch::try_new(batch.schema(), columns).unwrap());
            let found = if group < 2 { first.slice(group, 1) } else { rest.slice(group - 2, 1) };
            assert!(close(&found, &alone), "{name}, group {group}: {found:?} is not {alone:?}");
        }
    }
    assert!(columnar > 40, "{columnar}");
}

#[test]
fn columnar_states_of_single_rows_merge_to_the_whole() {
    let batch = rows(&mut Chance(3), 60);
    for (name, args) in calls() {
        let function = function(name, &args, &batch.schema());
        if !function.groups_accumulator_supported() {
            continue;
        }
        let mut accumulator = function.create_groups_accumulator().unwrap();
        let states = accumulator.convert_to_state(&inputs(&function, &batch), None).unwrap();
        accumulator.merge_batch(&states, &vec![0; 60], 1).unwrap();
        let found = accumulator.evaluate(EmitTo::All).unwrap();
        let expected = one_shot(&function, &batch);
        assert!(close(&found, &expected), "{name}: {found:?} is not {expected:?}");
    }
}

fn context(ansi: bool) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(1)
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
        .set_str("datafusion.sql_parser.dialect", "Databricks");
    let context = SessionContext::new_with_config(config);
    for function in aggregate_functions(&SqlSettings { ansi, ..SqlSettings::default() }) {
        context.register_udaf(function.as_ref().clone());
    }
    context
}

fn run(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    block_on(async {
        let frame = context.sql(sql).await?;
        let schema: SchemaRef = Arc::new(Schema::clone(frame.schema().as_arrow()));
        let batches = frame.collect().await?;
        let schema = batches.first().map_or(schema, |batch| batch.schema());
        let batch = concat_batches(&schema, &batches)?;
        let columns: Vec<Vec<String>> = batch.columns().iter().map(|column| text(column)).collect();
        Ok((0..batch.num_rows())
            .map(|row| columns.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join(" | "))
            .collect())
    })
}

fn ansi(sql: &str) -> String {
    run(&context(true), sql).unwrap_or_else(|error| panic!("{sql}: {error}")).join("\n")
}

fn failure(sql: &str) -> String {
    match run(&context(true), sql) {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_aggregate_over_nothing_is_zero_for_counts_empty_for_lists_and_null_otherwise() {
    let nothing = "FROM (VALUES (1, 1.5)) t(a, b) WHERE a > 1";
    assert_eq!(
        ansi(&format!("SELECT count(*), count(a), count_if(a > 0), approx_count_distinct(a) {nothing}")),
        "0 | 0 | 0 | 0"
    );
    assert_eq!(ansi(&format!("SELECT collect_list(a), collect_set(b) {nothing}")), "[] | []");
    assert_eq!(
        ansi(&format!(
            "SELECT sum(a), avg(b), min(a), stddev(a), first(a), mode(a), median(a), max_by(a, b) {nothing}"
        )),
        "NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL"
    );
}

#[test]
fn whole_numbers_sum_to_bigint_and_overflow_as_the_mode_says() {
    let large = "FROM (VALUES (9223372036854775807), (1)) t(a)";
    assert!(failure(&format!("SELECT sum(a) {large}")).contains("[ARITHMETIC_OVERFLOW]"));
    assert_eq!(ansi(&format!("SELECT try_sum(a) {large}")), "NULL");
    assert_eq!(run(&context(false), &format!("SELECT sum(a) {large}")).unwrap(), ["-9223372036854775808"]);
    assert_eq!(ansi("SELECT arrow_typeof(sum(CAST(a AS INT))) FROM (VALUES (1)) t(a)"), "Int64");
    assert_eq!(ansi("SELECT sum(a) FROM (VALUES ('1.5'), ('2')) t(a)"), "3.5");
    assert!(failure("SELECT sum(a) FROM (VALUES (true)) t(a)").contains("[DATATYPE_MISMATCH"));
}

#[test]
fn decimals_gain_digits_and_round_half_up() {
    let cents = "FROM (VALUES (1.00), (2.00), (2.01), (NULL)) t(a)";
    let typed = cents
        .replace("FROM (VALUES", "FROM (SELECT CAST(a AS DECIMAL(7,2)) AS a FROM (VALUES")
        .replace("t(a)", "t(a)) u");
    assert_eq!(
        ansi(&format!("SELECT sum(a), avg(a), arrow_typeof(sum(a)), arrow_typeof(avg(a)) {typed}")),
        "5.01 | 1.670000 | Decimal128(17, 2) | Decimal128(11, 6)"
    );
    let wide = "FROM (SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) AS a FROM (VALUES (1), (2)) t(n))";
    assert!(failure(&format!("SELECT sum(a) {wide}")).contains("[ARITHMETIC_OVERFLOW]"));
    assert_eq!(ansi(&format!("SELECT try_sum(a), try_avg(a) {wide}")), "NULL | NULL");
    assert_eq!(run(&context(false), &format!("SELECT sum(a), avg(a) {wide}")).unwrap(), ["NULL | NULL"]);
    assert_eq!(
        ansi("SELECT avg(a) FROM (SELECT CAST(a AS DECIMAL(2,0)) AS a FROM (VALUES (-1), (-1), (0)) t(a))"),
        "-0.6667"
    );
}

#[test]
fn nan_is_the_largest_value_and_equal_to_itself() {
    let values =
        "FROM (VALUES (CAST('NaN' AS DOUBLE)), (1.0), (CAST('NaN' AS DOUBLE)), (CAST('Infinity' AS DOUBLE))) t(a)";
    assert_eq!(ansi(&format!("SELECT max(a), min(a), mode(a) {values}")), "NaN | 1.0 | NaN");
    assert_eq!(ansi(&format!("SELECT cardinality(collect_set(a)), approx_count_distinct(a) {values}")), "3 | 3");
}

#[test]
fn structs_compare_field_by_field_with_null_first() {
    let values = "FROM (VALUES (1, 'a'), (NULL, 'z'), (2, NULL), (2, 'b')) t(o, v)";
    assert_eq!(ansi(&format!("SELECT max(named_struct('o', o, 'v', v))['v'] {values}")), "b");
    assert_eq!(ansi(&format!("SELECT min(named_struct('o', o, 'v', v))['v'] {values}")), "z");
}

#[test]
fn the_last_of_equal_orders_wins_and_rows_without_order_are_left_out() {
    let values = "FROM (VALUES ('x', 1), ('y', 2), ('z', 2), ('w', NULL), (NULL, 0)) t(v, o)";
    assert_eq!(ansi(&format!("SELECT max_by(v, o), min_by(v, o) {values}")), "z | NULL");
}

#[test]
fn percentiles_interpolate_and_approximate_ones_do_not() {
    let values = "FROM (VALUES (1), (10), (NULL)) t(a)";
    assert_eq!(
        ansi(&format!("SELECT percentile(a, 0.5), percentile(a, make_array(0.25, 0.9)), median(a) {values}")),
        "5.5 | [3.25, 9.1] | 5.5"
    );
    assert_eq!(
        ansi(&format!("SELECT percentile_approx(a, 0.5), percentile_approx(a, make_array(0.0, 1.0), 100) {values}")),
        "1 | [1, 10]"
    );
    assert_eq!(ansi(&format!("SELECT percentile(a, 0.5, 2) {values}")), "5.5");
    assert_eq!(ansi(&format!("SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY a) {values}")), "3.25");
    assert_eq!(ansi(&format!("SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY a DESC) {values}")), "7.75");
    assert_eq!(ansi(&format!("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) {values}")), "1.0");
    assert!(failure(&format!("SELECT percentile(a, 1.5) {values}")).contains("[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE]"));
    assert!(failure(&format!("SELECT percentile(a, a) {values}")).contains("[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT]"));
    assert!(
        failure(&format!("SELECT percentile_approx(a, 0.5, 0) {values}"))
            .contains("[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE]")
    );
}

#[test]
fn first_and_last_can_leave_nulls_out() {
    let values = "FROM (VALUES (NULL), (1), (2), (NULL)) t(a)";
    assert_eq!(
        ansi(&format!("SELECT first(a), last(a), first(a, true), last(a, true), any_value(a) {values}")),
        "NULL | NULL | 1 | 2 | NULL"
    );
    assert_eq!(ansi(&format!("SELECT first(a) IGNORE NULLS, last(a) IGNORE NULLS {values}")), "1 | 2");
}

#[test]
fn regressions_take_y_first() {
    let values = "FROM (VALUES (1.0, 2.0), (2.0, 2.0), (2.0, 3.0), (2.0, 4.0), (NULL, 9.0)) t(y, x)";
    assert_eq!(
        ansi(&format!(
            "SELECT regr_avgx(y, x), regr_avgy(y, x), regr_count(y, x), round(regr_sxx(y, x), 9), round(regr_sxy(y, x), 9), regr_syy(y, x) {values}"
        )),
        "2.75 | 1.75 | 4 | 2.75 | 0.75 | 0.75"
    );
    assert!(ansi(&format!("SELECT regr_slope(y, x), regr_r2(y, x) {values}")).starts_with("0.27272727272727"));
    assert_eq!(ansi("SELECT regr_r2(y, x), corr(y, x) FROM (VALUES (1, 1), (1, 2)) t(y, x)"), "1.0 | NULL");
    assert_eq!(ansi("SELECT regr_slope(y, x), regr_r2(y, x) FROM (VALUES (1, 1), (2, 1)) t(y, x)"), "NULL | NULL");
}

#[test]
fn distinct_is_refused_where_it_would_change_the_result() {
    assert!(failure("SELECT sum(DISTINCT a), avg(DISTINCT b) FROM (VALUES (1, 2)) t(a, b)").contains("DISTINCT"));
    assert_eq!(ansi("SELECT max(DISTINCT a) FROM (VALUES (1), (1)) t(a)"), "1");
}

#[test]
fn a_symmetric_group_has_exactly_no_skewness_also_when_it_came_in_batches() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, true)]));
    let function = function("skewness", &[Arg::Column("x")], &schema);
    for batches in [&[&[1.0, 2.5][..], &[4.0]], &[&[5.0][..], &[7.0]]] {
        let mut state: Option<Vec<ArrayRef>> = None;
        for values in batches {
            let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
            let mut accumulator = function.create_accumulator().unwrap();
            accumulator.update_batch(&[values]).unwrap();
            if let Some(state) = &state {
                accumulator.merge_batch(state).unwrap();
            }
            state = Some(arrays(accumulator.state().unwrap()));
        }
        let mut last = function.create_accumulator().unwrap();
        last.merge_batch(&state.unwrap()).unwrap();
        assert_eq!(last.evaluate().unwrap(), ScalarValue::Float64(Some(0.0)));
    }
}

#[test]
fn a_column_of_nothing_but_null_is_aggregated_like_any_other() {
    let values = "FROM (VALUES (NULL, 1), (NULL, 2)) t(a, k)";
    assert_eq!(
        ansi(&format!("SELECT count(a), sum(a), avg(a), min(a), max(a), collect_list(a), first(a), mode(a) {values}")),
        "0 | NULL | NULL | NULL | NULL | [] | NULL | NULL"
    );
    assert_eq!(
        ansi(&format!(
            "SELECT k, count(a), max(a), bit_or(a), bool_and(a), stddev(a), median(a), max_by(k, a), approx_count_distinct(a) {values} GROUP BY k ORDER BY k"
        )),
        "1 | 0 | NULL | NULL | NULL | NULL | NULL | NULL | 0\n2 | 0 | NULL | NULL | NULL | NULL | NULL | NULL | 0"
    );
}

#[test]
fn a_filter_chooses_the_rows_of_one_aggregate() {
    let values = "FROM (VALUES ('a', 1), ('a', 4), ('b', NULL), ('a', 6)) t(k, n)";
    assert_eq!(
        ansi(&format!(
            "SELECT k, sum(n) FILTER (WHERE n % 2 = 0), collect_list(n) FILTER (WHERE n > 1), max(n) FILTER (WHERE false), count(*) FILTER (WHERE n > 3) {values} GROUP BY k ORDER BY k"
        )),
        "a | 10 | [4, 6] | NULL | 2\nb | NULL | [] | NULL | 0"
    );
}

#[test]
fn dates_times_and_durations_keep_their_type() {
    let values = "FROM (VALUES (DATE '2024-05-01'), (DATE '2024-05-03'), (NULL)) t(d)";
    assert_eq!(
        ansi(&format!("SELECT min(d), max(d), percentile_approx(d, 0.5), mode(d), max_by(d, d) {values}")),
        "2024-05-01 | 2024-05-03 | 2024-05-01 | 2024-05-01 | 2024-05-03"
    );
}

#[test]
fn strings_are_joined_in_the_order_that_is_asked_for() {
    let values = "FROM (VALUES ('b', 3), (NULL, 9), ('a', 1), ('c', NULL)) t(s, k)";
    assert_eq!(
        ansi(&format!("SELECT listagg(s), string_agg(s, ', '), listagg(k, '-') {values}")),
        "bac | b, a, c | 3-9-1"
    );
    assert_eq!(
        ansi(&format!(
            "SELECT listagg(s, ',') WITHIN GROUP (ORDER BY k), listagg(s) WITHIN GROUP (ORDER BY s DESC) {values}"
        )),
        "c,a,b | cba"
    );
    assert_eq!(ansi(&format!("SELECT listagg(s, ',') {values} WHERE k > 100")), "NULL");
}

#[test]
fn every_name_of_an_aggregate_is_known() {
    let values = "FROM (VALUES (1, true), (2, false)) t(a, b)";
    assert_eq!(
        ansi(&format!(
            "SELECT every(b), some(b), bool_or(b), mean(a), std(a) > 0, first_value(a), last_value(a) {values}"
        )),
        "false | true | true | 1.5 | true | 1 | 2"
    );
    assert_eq!(
        ansi(&format!("SELECT any(b), approx_percentile(a, 0.5), array_agg(a), regr_count(a, a) {values}")),
        "true | 1 | [1, 2] | 2"
    );
}
