use super::formats::avro_of;
use super::*;
use arrow::array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::Fields;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(field("item", item)))
}

fn map_of(data_type: DataType) -> DataType {
    let pair = vec![Field::new("key", DataType::Utf8, false), field("value", data_type)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false)
}

/// Points as a file has them: the names of `y`, of one field more, and of `x`.
fn points(xs: Vec<i32>, names: &str, nulls: Option<NullBuffer>) -> StructArray {
    let ys: Vec<i64> = xs.iter().map(|x| i64::from(*x) * 10).collect();
    let more: Vec<String> = xs.iter().map(|x| format!("m{x}")).collect();
    let [y, more_name, x] = names.split(' ').collect::<Vec<_>>()[..] else { panic!("three names") };
    let fields = vec![field(y, DataType::Int64), field(more_name, DataType::Utf8), field(x, DataType::Int32)];
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(ys)), Arc::new(StringArray::from(more)), Arc::new(Int32Array::from(xs))];
    StructArray::try_new(fields.into(), columns, nulls).unwrap()
}

/// Points alone, in a list and in the values of a map, two rows of which the second is null.
fn rows_of(names: &str) -> RecordBatch {
    let alone = points(vec![1, 2], names, Some(vec![true, false].into()));
    let inner = points(vec![3, 4, 5], names, Some(vec![true, false, true].into()));
    let item = Arc::new(field("item", DataType::Struct(inner.fields().clone())));
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let list =
        ListArray::try_new(item, OffsetBuffer::from_lengths([3, 0]), Arc::new(inner.clone()), nulls.clone()).unwrap();
    let DataType::Map(entries, _) = map_of(DataType::Struct(inner.fields().clone())) else { panic!("a map") };
    let DataType::Struct(pair) = entries.data_type().clone() else { panic!("pairs") };
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let pairs = StructArray::try_new(pair, vec![keys, Arc::new(inner)], None).unwrap();
    let map = MapArray::try_new(entries, OffsetBuffer::from_lengths([3, 0]), pairs, nulls, false).unwrap();
    let columns: [(&str, ArrayRef); 3] = [("p", Arc::new(alone)), ("List", Arc::new(list)), ("m", Arc::new(map))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn parquet_of(rows: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    bytes
}

/// What queries declare: `z` is in no file.
fn declared() -> SchemaRef {
    let fields = ["x", "y", "z"].map(|name| field(name, DataType::Int32));
    let point = DataType::Struct(fields.to_vec().into());
    Arc::new(Schema::new(vec![
        field("p", point.clone()),
        field("list", list_of(point.clone())),
        field("m", map_of(point)),
    ]))
}

#[test]
fn fields_of_structs_are_found_by_name_wherever_the_structs_are() {
    let point = |x: i32| format!("{{x: {x}, y: {}, z: -}}", x * 10);
    let inner = [point(3), "-".to_owned(), point(5)];
    let pairs: Vec<String> = ["a", "b", "c"].iter().zip(&inner).map(|(key, point)| format!("{key}: {point}")).collect();
    let expected = ["-|-|-".to_owned(), format!("{}|[{}]|{{{}}}", point(1), inner.join(", "), pairs.join(", "))];
    for (format, names) in [("parquet", "y more x"), ("parquet", "Y x_more X"), ("avro", "Y more x")] {
        let rows = rows_of(names);
        let folder = TempDir::new().unwrap();
        put(folder.path(), "a", &if format == "avro" { avro_of(&rows) } else { parquet_of(&rows) }, 1);
        let (mut source, _) = open(&SourceSpec { schema: Some(declared()), ..spec(format, &folder, Options::new()) });
        assert_eq!(drain(source.as_mut()).concat(), expected, "{format} {names}");
    }
}

#[test]
fn a_field_that_was_renamed_is_null_and_takes_no_other_value() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", &parquet_of(&rows_of("y more w")), 1);
    let fields = ["x", "y"].map(|name| field(name, DataType::Int32));
    let schema = Schema::new(vec![field("p", DataType::Struct(fields.to_vec().into()))]);
    let (mut source, _) =
        open(&SourceSpec { schema: Some(Arc::new(schema)), ..spec("parquet", &folder, Options::new()) });
    assert_eq!(drain(source.as_mut()), [["-", "{x: -, y: 10}"]]);
}

#[test]
fn a_nested_value_that_does_not_fit_is_named_by_its_place() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", &parquet_of(&rows_of("y more x")), 1);
    let reason = |data_type: DataType| {
        let schema = Schema::new(vec![field("p", data_type)]);
        let (mut source, _) =
            open(&SourceSpec { schema: Some(Arc::new(schema)), ..spec("parquet", &folder, Options::new()) });
        let end = next(source.as_mut(), None).unwrap();
        source.read(None, &end, &[0]).unwrap_err().to_string()
    };
    let error = reason(DataType::Struct(Fields::from(vec![field("more", DataType::Int32)])));
    assert!(error.contains("column `p` does not fit its type: field `more`: "), "{error}");
    for other in [DataType::Utf8, list_of(DataType::Utf8)] {
        let error = reason(other);
        assert!(error.contains("column `p` does not fit its type: Struct("), "{error}");
    }
}
