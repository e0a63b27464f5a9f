//! What unnesting makes of lists, of lists of lists, of structs, of nothing.

use super::*;
use crate::testing::texts;
use arrow::array::{Int64Array, ListArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{Field, Fields, Int64Type, Schema};
use datafusion::common::NullHandling;
use millstream_common::BatchId;

const CONTEXT: BatchContext = BatchContext { batch: BatchId::FIRST, batch_time_ms: 0, watermarks: None };

fn list_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))
}

fn run(
    columns: Vec<(&str, ArrayRef)>,
    lists: &[(usize, usize)],
    structs: Vec<usize>,
    output: Vec<DataType>,
    nulls: NullHandling,
) -> Vec<String> {
    let rows = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
    let rows = rows.unwrap();
    let fields: Vec<Field> =
        output.into_iter().enumerate().map(|(i, kind)| Field::new(format!("c{i}"), kind, true)).collect();
    let lists =
        lists.iter().map(|&(index_in_input_schema, depth)| ListUnnest { index_in_input_schema, depth }).collect();
    let options = UnnestOptions::new().with_null_handling(nulls);
    let mut unnest = Unnest::try_new(lists, structs, &rows.schema(), Arc::new(Schema::new(fields)), &options).unwrap();
    let mut out = Vec::new();
    unnest.push(0, &rows, &CONTEXT, &mut out).unwrap();
    // A slice of a batch has offsets that do not begin at zero.
    let mut halves = Vec::new();
    let half = rows.num_rows() / 2;
    unnest.push(0, &rows.slice(0, half), &CONTEXT, &mut halves).unwrap();
    unnest.push(0, &rows.slice(half, rows.num_rows() - half), &CONTEXT, &mut halves).unwrap();
    assert_eq!(texts(&out), texts(&halves), "rows do not depend on how they are cut into batches");
    texts(&out)
}

fn numbers(rows: Vec<Option<Vec<Option<i64>>>>) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
}

fn words(words: Vec<&str>) -> ArrayRef {
    Arc::new(StringArray::from(words))
}

#[test]
fn each_element_is_a_row_and_nulls_are_as_asked() {
    let columns = || {
        let lists = numbers(vec![Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(3)])]);
        vec![("w", words(vec!["a", "b", "c", "d"])), ("l", lists)]
    };
    let output = || vec![DataType::Utf8, DataType::Int64];
    assert_eq!(run(columns(), &[(1, 1)], vec![], output(), NullHandling::Drop), ["a 1", "a null", "d 3"]);
    let kept = run(columns(), &[(1, 1)], vec![], output(), NullHandling::Preserve);
    assert_eq!(kept, ["a 1", "a null", "b null", "d 3"]);
    let kept = run(columns(), &[(1, 1)], vec![], output(), NullHandling::PreserveAndExpandEmpty);
    assert_eq!(kept, ["a 1", "a null", "b null", "c null", "d 3"]);
}

#[test]
fn lists_without_gaps_are_not_copied() {
    let lists = numbers(vec![Some(vec![Some(1), Some(2)]), Some(vec![]), Some(vec![Some(3)])]);
    let found = Lists::of(&lists).unwrap();
    assert_eq!(found.contiguous_from(&[2, 0, 1]), Some(0));
    assert_eq!(found.contiguous_from(&[2, 1, 1]), None, "the empty list is padded");
    assert_eq!(Lists::of(&lists.slice(1, 2)).unwrap().contiguous_from(&[0, 1]), Some(2));
}

#[test]
fn lists_side_by_side_are_padded_to_the_longest() {
    let left = numbers(vec![Some(vec![Some(1)]), None, Some(vec![Some(5), Some(6)])]);
    let right = numbers(vec![Some(vec![Some(7), Some(8)]), Some(vec![Some(9)]), Some(vec![])]);
    let columns = vec![("l", left), ("w", words(vec!["a", "b", "c"])), ("r", right)];
    let output = vec![DataType::Int64, DataType::Utf8, DataType::Int64];
    let rows = run(columns, &[(0, 1), (2, 1)], vec![], output, NullHandling::Drop);
    assert_eq!(rows, ["1 a 7", "null a 8", "null b 9", "5 c null", "6 c null"]);
}

#[test]
fn a_list_of_lists_can_be_unnested_at_two_depths_at_once() {
    let inner = numbers(vec![Some(vec![Some(1), Some(2)]), Some(vec![Some(3)]), Some(vec![Some(4)])]);
    let field = Arc::new(Field::new_list_field(list_type(), true));
    let outer: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([2, 1]), inner, None));
    let columns = vec![("l", outer), ("w", words(vec!["a", "b"]))];
    let output = vec![DataType::Int64, list_type(), DataType::Utf8];
    let rows = run(columns, &[(0, 2), (0, 1)], vec![], output, NullHandling::Preserve);
    assert_eq!(rows, ["1 [1, 2] a", "2 [3] a", "3 [1, 2] a", "null [3] a", "4 [4] b"]);
}

#[test]
fn a_struct_becomes_its_fields_and_null_where_it_is_null() {
    let fields = Fields::from(vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Utf8, true)]);
    let parts: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1, 2])), words(vec!["p", "q"])];
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let row: ArrayRef = Arc::new(StructArray::new(fields, parts, nulls));
    let columns = vec![("s", row), ("w", words(vec!["a", "b"]))];
    let output = vec![DataType::Int64, DataType::Utf8, DataType::Utf8];
    assert_eq!(run(columns, &[], vec![0], output, NullHandling::Preserve), ["1 p a", "null null b"]);
}

#[test]
fn what_is_no_list_is_refused() {
    let input: SchemaRef = Arc::new(Schema::new(vec![Field::new("l", list_type(), true)]));
    let refuse = |index, depth| {
        let lists = vec![ListUnnest { index_in_input_schema: index, depth }];
        Unnest::try_new(lists, vec![], &input, Arc::clone(&input), &UnnestOptions::new()).unwrap_err()
    };
    for (index, depth) in [(0, 2), (0, 0), (1, 1)] {
        assert!(matches!(refuse(index, depth), OperatorError::Misfit { .. }));
    }
}
