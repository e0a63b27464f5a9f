//! Forms of state: as JSON and back, cut and read, and the partition of a key.

use super::*;
use crate::row_codec::{RowCodec, partition_of};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit, TimestampMicrosecondType, UInt64Type};
use arrow::util::display::array_value_to_string;
use millstream_state::ByteRows;
use std::sync::Arc;

fn family(key: Vec<StatePart>, value: Vec<StatePart>) -> StateFamily {
    StateFamily { name: "rows".into(), schema_id: "id".into(), key, value }
}

fn nullable(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// Columns of every type that rows can have.
fn all_types() -> Fields {
    use DataType::*;
    let item = |data_type| Arc::new(nullable("item", data_type));
    let pair = Struct(vec![Field::new("key", Utf8, false), nullable("value", Float64)].into());
    let types = vec![
        Null,
        Boolean,
        Int8,
        UInt8,
        Int16,
        UInt16,
        Int32,
        UInt32,
        Int64,
        UInt64,
        Float16,
        Float32,
        Float64,
        Binary,
        LargeBinary,
        BinaryView,
        Utf8,
        LargeUtf8,
        Utf8View,
        FixedSizeBinary(7),
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())),
        Duration(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        Decimal32(5, 2),
        Decimal64(18, 0),
        Decimal128(38, -3),
        Decimal256(76, 76),
        List(item(Int64)),
        LargeList(item(Utf8)),
        FixedSizeList(item(Boolean), 3),
        Struct(Fields::empty()),
        Struct(vec![nullable("a", List(item(Date32))), Field::new("b", Utf8, false)].into()),
        Map(Arc::new(Field::new("entries", pair, false)), false),
    ];
    types.into_iter().enumerate().map(|(index, data_type)| nullable(&format!("c{index}"), data_type)).collect()
}

#[test]
fn every_type_survives_as_json() {
    let family = family(vec![StatePart::EventTime("end".into()), StatePart::row(all_types())], Vec::new());
    let json = serde_json::to_value(&family).unwrap();
    assert_eq!(serde_json::from_value::<StateFamily>(json).unwrap(), family);
}

#[test]
fn a_type_without_a_row_form_is_refused_and_every_other_is_read() {
    for field in all_types().iter() {
        let row = StatePart::row(vec![Arc::clone(field)]);
        let reader = FamilyReader::try_new(&family(vec![row], Vec::new()));
        let has_form = RowCodec::try_new(vec![field.data_type().clone()]).is_ok();
        assert_eq!(reader.is_ok(), has_form, "{field}");
        if let Ok(reader) = reader {
            assert_eq!(reader.read(&ByteRows::new(), &ByteRows::new()).unwrap().0.len(), 0);
        }
    }
}

#[test]
fn the_json_of_a_family_never_changes() {
    let window: Fields = vec![nullable("end", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))].into();
    let columns = vec![Field::new("w", DataType::Struct(window), false), nullable("word", DataType::Utf8)];
    let family = family(
        vec![StatePart::EventTime("w.end".into()), StatePart::owned_row(columns, vec![0]), StatePart::U64("n".into())],
        vec![StatePart::row(vec![nullable("sum", DataType::Decimal128(20, 2))])],
    );
    let expected = serde_json::json!({
        "name": "rows",
        "schema_id": "id",
        "key": [
            {"event_time": "w.end"},
            {"row": {"form": "arrow-row-1", "owners": [0], "columns": [
                {"name": "w", "format": "+s", "nullable": false, "children": [{"name": "end", "format": "tsu:UTC"}]},
                {"name": "word", "format": "u"},
            ]}},
            {"u64": "n"},
        ],
        "value": [{"row": {"form": "arrow-row-1", "columns": [{"name": "sum", "format": "d:20,2"}]}}],
    });
    assert_eq!(serde_json::to_value(&family).unwrap(), expected);
}

#[test]
fn what_no_program_wrote_is_refused() {
    for format in
        ["", "?Run", "x", "d:", "d:0,0", "d:39,0", "d:5,2,16", "w:-1", "+w:2", "+l", "+m", "ts", "tsu", "tD", "tiX"]
    {
        let column = serde_json::json!({"name": "c", "format": format});
        let row = serde_json::json!({"form": "arrow-row-1", "columns": [column]});
        let error = serde_json::from_value::<RowPart>(row).unwrap_err().to_string();
        assert!(error.contains("unknown type"), "{format}: {error}");
    }
    let mut other = StatePart::row(vec![nullable("c", DataType::Int64)]);
    if let StatePart::Row(row) = &mut other {
        row.form = "arrow-row-2".into();
    }
    assert!(FamilyReader::try_new(&family(vec![other], Vec::new())).is_err());
    let twice = vec![StatePart::Text("a".into()), StatePart::Bytes("b".into())];
    assert!(FamilyReader::try_new(&family(twice, Vec::new())).is_err());
}

fn rows(items: &[&[u8]]) -> ByteRows {
    let mut rows = ByteRows::new();
    items.iter().for_each(|item| rows.push(item));
    rows
}

#[test]
fn keys_and_values_are_cut_from_both_ends() {
    let key: ArrayRef = Arc::new(StringArray::from(vec!["ab"]));
    let encoded = RowCodec::try_new(vec![DataType::Utf8]).unwrap().encode(&[key]).unwrap();
    let family = family(
        vec![
            StatePart::EventTime("at".into()),
            StatePart::row(vec![nullable("word", DataType::Utf8)]),
            StatePart::U32("number".into()),
            StatePart::U8("side".into()),
        ],
        vec![StatePart::U64LittleEndian("count".into()), StatePart::Text("rest".into())],
    );
    assert!(family.is_spread() && family.has_event_time());
    let reader = FamilyReader::try_new(&family).unwrap();
    let key = |time: u64| [&time.to_be_bytes(), encoded.row(0), &7_u32.to_be_bytes(), &[3]].concat();
    let keys = [key(crate::event_order::ordered(-5)), key(u64::MAX)];
    let value = [&9_u64.to_le_bytes()[..], b"xyz"].concat();
    let (keys, values) = (rows(&[&keys[0], &keys[1]]), rows(&[&value, &9_u64.to_le_bytes()]));
    let (key, value) = reader.read(&keys, &values).unwrap();
    let text = |rows: &StructArray, row| {
        rows.columns().iter().map(|column| array_value_to_string(column, row).unwrap()).collect::<Vec<_>>()
    };
    let times = key.column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!((times.value(0), times.is_null(1)), (-5, true));
    assert_eq!(text(&key, 0)[1..], ["ab", "7", "3"]);
    assert_eq!(text(&value, 0), ["9", "xyz"]);
    assert_eq!(value.column(0).as_primitive::<UInt64Type>().value(1), 9);
    let owner = partition_of(encoded.row(0), 5);
    assert_eq!(reader.partitions(&keys, 5).unwrap(), [owner, owner]);
    let error = reader.read(&rows(&[b"short"]), &rows(&[b""])).unwrap_err();
    assert!(millstream_common::describe_chain(&error).contains("5 bytes instead of at least 13"), "{error:?}");
}

#[test]
fn some_columns_of_a_key_can_decide_on_its_partition() {
    let (number, word): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["ab", "b"])));
    let whole = RowCodec::try_new(vec![DataType::Int64, DataType::Utf8]).unwrap();
    let whole = whole.encode(&[number, Arc::clone(&word)]).unwrap();
    let owner = RowCodec::try_new(vec![DataType::Utf8]).unwrap().encode(&[word]).unwrap();
    let columns = vec![nullable("number", DataType::Int64), nullable("word", DataType::Utf8)];
    let with_owners = |owners| family(vec![StatePart::owned_row(columns.clone(), owners)], Vec::new());
    let reader = FamilyReader::try_new(&with_owners(vec![1])).unwrap();
    let keys = rows(&[whole.row(0), whole.row(1)]);
    for partitions in [1, 2, 7] {
        let expected = [0, 1].map(|row| partition_of(owner.row(row), partitions));
        assert_eq!(reader.partitions(&keys, partitions).unwrap(), expected);
    }
    assert!(!with_owners(Vec::new()).is_spread());
    assert!(FamilyReader::try_new(&with_owners(vec![2])).is_err());
}

#[test]
fn a_value_can_be_a_list_of_times() {
    let reader = FamilyReader::try_new(&family(Vec::new(), vec![StatePart::EventTimes("at".into())])).unwrap();
    let times = [-1, 1].map(|time| crate::event_order::ordered(time).to_be_bytes()).concat();
    let (_, value) = reader.read(&rows(&[b"", b""]), &rows(&[&times, b""])).unwrap();
    let lists = value.column(0).as_list::<i32>();
    assert_eq!(lists.value(0).as_primitive::<TimestampMicrosecondType>().values(), &[-1, 1]);
    assert_eq!(lists.value_length(1), 0);
    assert!(reader.read(&rows(&[b""]), &rows(&[b"123"])).is_err());
}

#[test]
fn families_without_columns_in_their_key_are_global() {
    assert!(!family(vec![StatePart::Text("what".into())], Vec::new()).is_spread());
    let global = family(vec![StatePart::row(Fields::empty())], Vec::new());
    assert!(!global.is_spread());
    let reader = FamilyReader::try_new(&global).unwrap();
    assert_eq!(reader.partitions(&rows(&[b"", b""]), 1).unwrap(), [0, 0]);
    let (key, value) = reader.read(&rows(&[b"", b""]), &rows(&[b"", b""])).unwrap();
    assert_eq!((key.len(), value.len(), key.num_columns()), (2, 2, 0));
}
