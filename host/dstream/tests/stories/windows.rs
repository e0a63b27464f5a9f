//! Windows: which batches are in them, and when.

use crate::harness::{counts, over_lines, over_queue, pair, seconds};

#[test]
fn a_window_has_the_batches_since_its_length_and_comes_at_its_slide() {
    let batches = (1..=6).map(|n| vec![n]).collect();
    let seen = over_queue(batches, |_, rows| rows.window(seconds(3), seconds(2)));
    assert_eq!(seen, [(2, vec![1, 2]), (4, vec![2, 3, 4]), (6, vec![4, 5, 6])]);
}

#[test]
fn a_slide_beyond_the_length_leaves_batches_out() {
    let batches = (1..=6).map(|n| vec![n]).collect();
    let seen = over_queue(batches, |_, rows| rows.window(seconds(1), seconds(3)));
    assert_eq!(seen, [(3, vec![3]), (6, vec![6])]);
}

#[test]
fn a_window_of_a_window_goes_by_the_inner_slide() {
    let batches = (1..=8).map(|n| vec![n]).collect();
    let seen = over_queue(batches, |_, rows| rows.window(seconds(2), seconds(2)).window(seconds(4), seconds(4)));
    assert_eq!(seen, [(4, vec![1, 2, 3, 4]), (8, vec![5, 6, 7, 8])]);
}

#[test]
fn windows_are_reduced_and_grouped() {
    let batches = || vec![vec![('a', 1)], vec![('b', 2), ('a', 3)], vec![('b', 4)]];
    let reduced =
        over_queue(batches(), |_, pairs| pairs.reduce_by_key_and_window(|a, b| a + b, seconds(2), seconds(1)));
    assert_eq!(reduced, [(1, vec![('a', 1)]), (2, vec![('a', 4), ('b', 2)]), (3, vec![('a', 3), ('b', 6)])]);
    let grouped = over_queue(batches(), |_, pairs| pairs.group_by_key_and_window(seconds(2), seconds(1)));
    assert_eq!(grouped[2], (3, vec![('a', vec![3]), ('b', vec![2, 4])]));
    let whole = over_queue(vec![vec![1, 2], vec![3], vec![]], |_, rows| {
        rows.reduce_by_window(|a, b| a + b, seconds(2), seconds(1))
    });
    assert_eq!(whole, [(1, vec![3]), (2, vec![6]), (3, vec![3])]);
}

const WORDS: [&[&str]; 6] = [&["a", "b"], &["a"], &[], &["b"], &[], &[]];

#[test]
fn a_window_with_inverse_keeps_keys_at_zero() {
    let seen = over_lines(&WORDS, |lines| {
        lines.map(pair).reduce_by_key_and_window_inverse(|a, b| a + b, |a, b| a - b, seconds(2), seconds(1))
    });
    assert_eq!(seen[0], (1, counts(&[("a", 1), ("b", 1)])));
    assert_eq!(seen[1], (2, counts(&[("a", 2), ("b", 1)])));
    assert_eq!(seen[2], (3, counts(&[("a", 1), ("b", 0)])));
    assert_eq!(seen[3], (4, counts(&[("a", 0), ("b", 1)])));
    assert_eq!(seen[5], (6, counts(&[("a", 0), ("b", 0)])));
}

#[test]
fn a_filter_takes_keys_out_of_a_window_with_inverse() {
    let seen = over_lines(&WORDS, |lines| {
        lines.map(pair).reduce_by_key_and_window_filtered(
            |a, b| a + b,
            |a, b| a - b,
            (seconds(2), seconds(1)),
            |_, count| *count > 0,
        )
    });
    let wanted: [&[(&str, i64)]; 6] =
        [&[("a", 1), ("b", 1)], &[("a", 2), ("b", 1)], &[("a", 1)], &[("b", 1)], &[("b", 1)], &[]];
    for (at, wanted) in wanted.iter().enumerate() {
        assert_eq!(seen[at].1, counts(wanted), "batch {}", at + 1);
    }
}

#[test]
fn windows_with_and_without_inverse_agree() {
    let words: Vec<&[&str]> = vec![&["a", "b", "a"], &["c"], &["a"], &["b", "b"], &[], &["c", "a"], &[], &[]];
    let plain =
        over_lines(&words, |lines| lines.map(pair).reduce_by_key_and_window(|a, b| a + b, seconds(4), seconds(2)));
    let inverse = over_lines(&words, |lines| {
        lines.map(pair).reduce_by_key_and_window_filtered(
            |a, b| a + b,
            |a, b| a - b,
            (seconds(4), seconds(2)),
            |_, count| *count != 0,
        )
    });
    assert_eq!(plain.len(), 4);
    assert_eq!(plain, inverse);
}

#[test]
fn rows_of_a_window_are_counted() {
    let counted =
        over_lines(&[&[], &["a", "b"], &["a"], &[], &[]], |lines| lines.count_by_window(seconds(2), seconds(1)));
    assert_eq!(counted, [(1, vec![]), (2, vec![2]), (3, vec![3]), (4, vec![1]), (5, vec![0])]);
    let by_value = over_lines(&WORDS, |lines| lines.count_by_value_and_window(seconds(2), seconds(1)));
    assert_eq!(by_value[2], (3, counts(&[("a", 1)])));
    assert_eq!(by_value[5], (6, vec![]));
    let reduced = over_lines(&[&["1", "2"], &["3"], &[]], |lines| {
        let numbers = lines.map(|line| line.parse::<i64>().unwrap());
        numbers.reduce_by_window_inverse(|a, b| a + b, |a, b| a - b, seconds(2), seconds(1))
    });
    assert_eq!(reduced, [(1, vec![3]), (2, vec![6]), (3, vec![3])]);
}

#[test]
fn a_window_with_inverse_that_slides_beyond_its_length_is_right() {
    let words: Vec<&[&str]> = vec![&["a"], &["b"], &["a"], &["a"], &["c"], &["b"]];
    let seen = over_lines(&words, |lines| {
        lines.map(pair).reduce_by_key_and_window_filtered(
            |a, b| a + b,
            |a, b| a - b,
            (seconds(1), seconds(3)),
            |_, count| *count != 0,
        )
    });
    assert_eq!(seen, [(3, counts(&[("a", 1)])), (6, counts(&[("b", 1)]))]);
}
