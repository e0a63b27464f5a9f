//! Every type, over its full range, with nulls, in slices, empty.

use arrow::array::{Array, ArrayRef};

use crate::columns::{all, everything, json, measure, others, ranges, same_table};

/// A column comes back as it went, also pieces of it that begin anywhere.
fn comes_back(function: &str, column: &ArrayRef) {
    for guest in all() {
        for (offset, len) in [(0, column.len()), (1, column.len() - 1), (2, column.len() - 2), (0, 0)] {
            let slice = column.slice(offset, len);
            let outcome = guest.scalar(function, std::slice::from_ref(&slice)).unwrap_or_else(|e| panic!("{e:#}"));
            assert_eq!(&outcome.values, &slice, "{function} in {}, {len} rows from {offset}", guest.name);
            assert!(outcome.faults.is_empty(), "{function} in {}: {:?}", guest.name, outcome.faults);
        }
    }
}

#[test]
fn every_language_offers_the_same_functions() {
    let expected = measure().component().functions();
    for guest in others() {
        for signature in expected {
            let (_, found) = guest
                .component()
                .function(&signature.name)
                .unwrap_or_else(|| panic!("{} has no function {}", guest.name, signature.name));
            // Who leaves out rows with nulls, the host or the SDK, is the SDK's choice.
            let same = found.kind == signature.kind
                && found.volatility == signature.volatility
                && found.results == signature.results
                && found.arguments == signature.arguments;
            assert!(same, "in {} it is {found}, in rust {signature}", guest.name);
        }
        assert_eq!(guest.component().functions().len(), expected.len(), "{}", guest.name);
    }
}

#[test]
fn every_type_comes_back_over_its_full_range() {
    for (function, column) in ranges() {
        comes_back(function, &column);
    }
}

#[test]
fn lists_and_structs_come_back() {
    comes_back("echo_list", &json("echo_list", &[r#"["a",null,""]"#, "null", "[]", "[null]", r#"["länger"]"#]));
    comes_back("echo_lists", &json("echo_lists", &["[[1.5,null],null,[]]", "null", "[]", "[[-0.0],[2.5]]"]));
    let [one, two, three, five] = [1, 2, 3, 5].map(everything);
    comes_back("echo_struct", &json("echo_struct", &[&one, "null", &two, &three, &five]));
    let rows = [format!("[{one},null]"), "null".into(), "[]".into(), format!("[{two},{three},{five}]")];
    comes_back("echo_structs", &json("echo_structs", &rows.each_ref().map(String::as_str)));
}

#[test]
fn a_struct_becomes_the_columns_of_a_table_function() {
    let [one, two, three] = [1, 2, 3].map(everything);
    same_table("echo_rows", &[json("echo_rows", &[&one, "null", &two, &three])]);
    same_table("echo_rows", &[json("echo_rows", &[])]);
}

#[test]
fn long_texts_come_back() {
    let long = "Ünicode und mehr, ".repeat(60_000);
    let plain = "0123456789abcdef".repeat(65_536);
    let column = crate::columns::texts([Some(long.as_str()), None, Some("short"), Some(plain.as_str())]);
    comes_back("echo_utf8", &column);
    for guest in all() {
        let outcome = guest.scalar("repeated", &[crate::columns::numbers([1 << 20, 0, 3])]).unwrap();
        let values: &arrow::array::StringArray = arrow::array::AsArray::as_string(&outcome.values);
        assert_eq!([0, 1, 2].map(|row| values.value(row).len()), [1 << 20, 0, 3], "{}", guest.name);
    }
}
