use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int8Array, Int64Array,
    ListArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int32Type, Int64Type, TimeUnit};

use super::decode::{self, Buffers};
use super::encode;

fn field(data_type: &DataType) -> FieldRef {
    Arc::new(Field::new("x", data_type.clone(), true))
}

fn bytes(array: &ArrayRef) -> Vec<Vec<u8>> {
    let mut buffers: Vec<Buffer> = Vec::new();
    encode::encode(array, &mut buffers).unwrap();
    buffers.iter().map(|buffer| buffer.to_vec()).collect()
}

fn round_trip(array: &ArrayRef) -> ArrayRef {
    let mut buffers = Buffers::new(bytes(array));
    let back = decode::column(&field(array.data_type()), array.len(), &mut buffers).unwrap();
    buffers.finish().unwrap();
    back
}

/// Arrays of 40 rows of every shape.
fn arrays() -> Vec<ArrayRef> {
    let n = 40i64;
    let sparse = |i: i64| (i % 7 != 3).then_some(i);
    let text = |i: i64| sparse(i).map(|i| "é".repeat(usize::try_from(i % 5).unwrap()));
    let strings: StringArray = (0..n).map(text).collect();
    let numbers: Int64Array = (0..n).map(sparse).collect();
    let fields = Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let nulls = (0..n).map(|i| i % 4 != 0).collect::<Vec<_>>().into();
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers.clone()), Arc::new(strings.clone())];
    let lists = (0..n).map(|i| sparse(i).map(|i| (0..i % 4).map(sparse).collect::<Vec<_>>()));
    vec![
        Arc::new((0..n).map(|i| sparse(i).map(|i| i % 2 == 0)).collect::<BooleanArray>()),
        Arc::new((0..n).map(|i| i8::try_from(i).ok()).collect::<Int8Array>()),
        Arc::new((0..n).map(|i| sparse(i).map(|i| i as f64 / 3.0)).collect::<Float64Array>()),
        Arc::new(Decimal128Array::from_iter_values((0..n).map(i128::from)).with_precision_and_scale(20, 2).unwrap()),
        Arc::new(TimestampMicrosecondArray::from_iter_values(0..n).with_timezone("UTC")),
        Arc::new((0..n).map(|i| text(i).map(String::into_bytes)).collect::<BinaryArray>()),
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        Arc::new(StructArray::new(fields, columns, Some(nulls))),
        Arc::new(strings),
        Arc::new(numbers),
    ]
}

#[test]
fn every_slice_of_every_type_comes_back_equal() {
    for array in arrays() {
        for (offset, len) in [(0, 40), (0, 0), (1, 39), (8, 16), (13, 9), (39, 1), (40, 0)] {
            let slice = array.slice(offset, len);
            assert_eq!(&round_trip(&slice), &slice, "{} from {offset} for {len}", array.data_type());
        }
    }
}

#[test]
fn the_length_is_known_before_encoding() {
    for array in arrays() {
        let slice = array.slice(5, 30);
        let real: usize = bytes(&slice).iter().map(Vec::len).sum();
        let told = encode::encoded_len(&slice);
        assert!(told + 64 >= real && told <= real + 64, "{}: {told} for {real}", array.data_type());
    }
}

#[test]
fn dictionaries_views_and_time_zones_are_decoded_first() {
    let utf8 = field(&DataType::Utf8);
    let dictionary: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
    let plain: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    assert_eq!(&encode::normalise(&(Arc::new(dictionary) as ArrayRef), &utf8).unwrap(), &plain);
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "a"]));
    assert_eq!(&encode::normalise(&views, &utf8).unwrap(), &plain);
    let moment = field(&DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    let zoned: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1, 2]).with_timezone("+00:00"));
    assert_eq!(encode::normalise(&zoned, &moment).unwrap().data_type(), moment.data_type());
    assert!(encode::normalise(&views, &field(&DataType::Int64)).is_err());
}

#[test]
fn input_rows_ascend_and_exist() {
    let rows = |rows: &[u32]| rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(decode::input_rows(&rows(&[0, 0, 2]), 3, 3).unwrap().values(), &[0, 0, 2]);
    assert!(decode::input_rows(&rows(&[0, 3]), 2, 3).unwrap_err().contains("input row 3 of 3"));
    assert!(decode::input_rows(&rows(&[1, 0]), 2, 3).unwrap_err().contains("input row 0 after 1"));
    assert!(decode::input_rows(&rows(&[1]), 2, 3).unwrap_err().contains("4 bytes, not 8"));
    assert!(decode::input_rows(&[], 0, 0).unwrap().is_empty());
}

#[test]
fn decimals_beyond_their_precision_are_refused() {
    let buffers = vec![vec![], 1000i128.to_le_bytes().to_vec()];
    let decimal = field(&DataType::Decimal128(3, 0));
    assert!(decode::column(&decimal, 1, &mut Buffers::new(buffers)).is_err());
}

#[test]
fn random_bytes_never_become_an_array_that_is_not_valid() {
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 40).unwrap()
    };
    for array in arrays() {
        let good = bytes(&array);
        for _ in 0..400 {
            let mut bad = good.clone();
            for _ in 0..1 + random() % 3 {
                let buffer = random() % bad.len();
                match random() % 4 {
                    0 if !bad[buffer].is_empty() => {
                        let place = random() % bad[buffer].len();
                        bad[buffer][place] = u8::try_from(random() % 256).unwrap();
                    }
                    1 => bad[buffer].truncate(random() % 50),
                    2 => bad[buffer].push(0),
                    _ => {}
                }
            }
            let mut buffers = Buffers::new(bad);
            if let Ok(array) = decode::column(&field(array.data_type()), array.len(), &mut buffers) {
                array.to_data().validate_full().unwrap();
            }
        }
    }
}
