use super::*;
use arrow::array::ArrayRef;
use arrow::datatypes::TimeUnit;
use arrow_avro::writer::AvroWriter;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::Int96;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// The columns of [`parquet_bytes`], in another format.
fn rows_of(n: i64) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("other", Arc::new(Int32Array::from(vec![7, 8]))),
        ("WORD", Arc::new(StringArray::from(vec![Some(format!("w{n}")), None]))),
        ("id", Arc::new(Int64Array::from(vec![n, -n]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn avro_bytes(n: i64) -> Vec<u8> {
    avro_of(&rows_of(n))
}

pub(super) fn avro_of(rows: &RecordBatch) -> Vec<u8> {
    let mut writer = AvroWriter::new(Vec::new(), rows.schema().as_ref().clone()).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
    writer.into_inner()
}

fn orc_bytes(n: i64) -> Vec<u8> {
    orc_of(&rows_of(n))
}

pub(super) fn orc_of(rows: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = orc_rust::ArrowWriterBuilder::new(&mut bytes, rows.schema()).try_build().unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn avro_files_keep_the_contract() {
    contract("avro", Some(words()), |n| avro_bytes(n as i64));
}

#[test]
fn orc_files_keep_the_contract() {
    contract("orc", Some(words()), |n| orc_bytes(n as i64));
}

#[test]
fn columns_are_found_by_name_and_cast_and_cut_files_are_bad() {
    for (format, bytes) in [("avro", avro_bytes(5)), ("orc", orc_bytes(5))] {
        let folder = TempDir::new().unwrap();
        put(folder.path(), "a", &bytes, 1);
        let schema = Schema::new(vec![
            Field::new("word", DataType::Utf8, true),
            Field::new("absent", DataType::Float64, true),
            Field::new("id", DataType::Int32, true),
        ]);
        let spec = SourceSpec { schema: Some(Arc::new(schema)), ..spec(format, &folder, Options::new()) };
        let (mut source, _) = open(&spec);
        assert_eq!(drain(source.as_mut()), [["-|-|-5", "w5|-|5"]], "{format}");
        for length in [1, 20, bytes.len() / 2, bytes.len() - 1] {
            let folder = TempDir::new().unwrap();
            put(folder.path(), "cut", &bytes[..length], 1);
            let options = spec.options.clone().with("path", folder.path().to_str().unwrap());
            let (mut source, _) = open(&SourceSpec { options, ..spec.clone() });
            let end = next(source.as_mut(), None).unwrap();
            let error = source.read(None, &end, &[0, 2]).unwrap_err();
            assert!(matches!(error, SourceError::Malformed { .. }), "{format} cut to {length}: {error:?}");
        }
    }
}

#[test]
fn empty_files_have_no_rows() {
    for (format, bytes) in [("avro", avro_bytes(5)), ("orc", orc_bytes(5)), ("parquet", parquet_bytes(5))] {
        let folder = TempDir::new().unwrap();
        put(folder.path(), "a", b"", 1);
        put(folder.path(), "b", &bytes, 2);
        let (mut source, _) = open(&SourceSpec { schema: Some(words()), ..spec(format, &folder, Options::new()) });
        assert_eq!(drain(source.as_mut()), [["-5|-", "5|w5"]], "{format}");
        put(folder.path(), "a", &bytes, 3);
        assert_eq!(next(source.as_mut(), Some(&offset(0))), Some(offset(0)), "it counts as read");
    }
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"", 1);
    assert!(drain(open(&spec("text", &folder, Options::new())).0.as_mut()).concat().is_empty());
    let whole = Options::new().with("wholetext", "true");
    assert_eq!(drain(open(&spec("text", &folder, whole)).0.as_mut()), [[""]], "a whole text is a row in any case");
}

#[test]
fn hostile_files_are_bad_and_never_a_panic() {
    for (format, bytes) in [("avro", avro_bytes(5)), ("orc", orc_bytes(5)), ("parquet", parquet_bytes(5))] {
        let folder = TempDir::new().unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            put(folder.path(), &format!("f{at:05}"), &changed, 1);
        }
        let options = Options::new().with("badFiles", "skip");
        let (mut source, _) = open(&SourceSpec { schema: Some(words()), ..spec(format, &folder, options) });
        let end = next(source.as_mut(), None).unwrap();
        let first = all(source.as_mut(), None, &end);
        assert_eq!(first, all(source.as_mut(), None, &end), "{format}");
    }
}

/// Times of 96 bits in every place where they can be, as Spark writes them, and one of nanoseconds between them.
fn old_times(days: [u32; 2], nanos: u64) -> Vec<u8> {
    let schema = "message spark_schema {
        optional int96 at;
        optional int64 precise (TIMESTAMP(NANOS, false));
        optional group nested { optional int64 n; optional int96 at; }
        optional group times (LIST) { repeated group list { optional int96 element; } }
        optional group named (MAP) {
            repeated group key_value { required int96 key; optional int96 value; }
        }
    }";
    let times = days.map(|day| {
        let mut time = Int96::new();
        time.set_data(nanos as u32, (nanos >> 32) as u32, day);
        time
    });
    let mut bytes = Vec::new();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    // How deep each leaf is defined.
    for defined in [1, 1, 2, 2, 3, 2, 3] {
        let mut column = group.next_column().unwrap().unwrap();
        match column.untyped() {
            ColumnWriter::Int96ColumnWriter(column) => {
                column.write_batch(&times, Some(&[defined; 2]), Some(&[0; 2])).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(column) => {
                column.write_batch(&[1_000, 2_000], Some(&[defined; 2]), None).unwrap();
            }
            _ => panic!("there are no other columns"),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn times_of_96_bits_are_right_in_all_years() {
    let folder = TempDir::new().unwrap();
    // The first day and the last one that Spark has, a microsecond before midnight.
    put(folder.path(), "a", &old_times([1_721_426, 5_373_484], 86_399_999_999_000), 1);
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    for zone in [None, Some("UTC".into())] {
        let time = DataType::Timestamp(TimeUnit::Microsecond, zone);
        let pair = vec![Field::new("key", time.clone(), false), field("value", time.clone())];
        let schema = Schema::new(vec![
            field("at", time.clone()),
            field("precise", time.clone()),
            field("nested", DataType::Struct(vec![field("at", time.clone())].into())),
            field("times", DataType::List(Arc::new(field("item", time)))),
            field("named", DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false)),
        ]);
        let spec = SourceSpec { schema: Some(Arc::new(schema)), ..spec("parquet", &folder, Options::new()) };
        let (mut source, _) = open(&spec);
        let row = |day: &str, micros: u32| {
            let time = format!("{day}T23:59:59.999999");
            format!("{time}|1970-01-01T00:00:00.00000{micros}|{{at: {time}}}|[{time}]|{{{time}: {time}}}")
        };
        let rows: Vec<String> = drain(source.as_mut()).concat().iter().map(|row| row.replace('Z', "")).collect();
        assert_eq!(rows, [row("0001-01-01", 1), row("9999-12-31", 2)]);
    }
    let spec = spec("parquet", &folder, Options::new().with("inferSchema", "true"));
    let (mut source, _) = open(&spec);
    assert_eq!(source.schema().field(0).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, None));
    assert!(drain(source.as_mut()).concat()[1].starts_with("9999-12-31T23:59:59.999999|"));
}

#[test]
fn compressed_lines_are_read_by_their_ending() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a.csv.zst", &zstd::stream::encode_all(&b"1,one\n"[..], 3).unwrap(), 1);
    put(folder.path(), "b.csv", b"2,two\n", 2);
    let (mut source, _) = open(&SourceSpec { schema: Some(words()), ..spec("csv", &folder, Options::new()) });
    assert_eq!(drain(source.as_mut()), [["1|one", "2|two"]]);
    put(folder.path(), "c.csv.bz2", b"BZh9", 3);
    let end = next(source.as_mut(), Some(&offset(0))).unwrap();
    let error = source.read(Some(&offset(0)), &end, &[0]).unwrap_err();
    assert!(error.to_string().ends_with("c.csv.bz2`: files that end in .bz2 are not read"), "{error}");
}

#[test]
fn columns_are_inferred_on_request() {
    let columns = |format: &str, bytes: &[u8], options: Options| {
        let folder = TempDir::new().unwrap();
        put(folder.path(), "a", bytes, 1);
        let spec = spec(format, &folder, options.with("inferSchema", "true"));
        let schema = SourceRegistry::with_builtins().factory(&spec).unwrap().schema(&spec).unwrap();
        let fields = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        let text = fields.collect::<Vec<_>>().join(", ");
        let (mut source, _) = open(&spec);
        (text, drain(source.as_mut()).concat())
    };
    let (text, rows) = columns("json", b"{\"n\":1,\"at\":\"x\"}\n{\"n\":2.5}\n", Options::new());
    assert_eq!((text.as_str(), rows), ("at Utf8, n Float64", vec!["-|2.5".into(), "x|1.0".into()]));
    let (text, rows) = columns("csv", b"n,s\n1,x\n", Options::new().with("header", "true"));
    assert_eq!((text.as_str(), rows), ("n Int32, s Utf8", vec!["1|x".into()]));
    for (format, bytes) in [("avro", avro_bytes(3)), ("orc", orc_bytes(3)), ("parquet", parquet_bytes(3))] {
        let (text, rows) = columns(format, &bytes, Options::new());
        assert_eq!(text, "other Int32, WORD Utf8, id Int64", "{format}");
        assert_eq!(rows, ["7|w3|3", "8|-|-3"], "{format}");
    }
    let folder = TempDir::new().unwrap();
    let spec = spec("json", &folder, Options::new().with("inferSchema", "true"));
    let error = SourceRegistry::with_builtins().factory(&spec).unwrap().schema(&spec).unwrap_err();
    assert!(error.to_string().contains("there is no file in"), "{error}");
}
