use super::*;
use std::sync::atomic::AtomicUsize;

fn numbers() -> Rdd<i64> {
    Rdd::from_partitions(vec![vec![1, 2, 3], vec![], vec![4, 5]])
}

#[test]
fn rows_are_evaluated_when_asked_for_and_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let doubled = numbers().map(move |n| {
        counted.fetch_add(1, Ordering::SeqCst);
        n * 2
    });
    let (odd, even) = (doubled.map(|n| n + 1), doubled.filter(|n| n % 4 == 0));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(odd.collect().unwrap(), [3, 5, 7, 9, 11]);
    assert_eq!(even.collect().unwrap(), [4, 8]);
    assert_eq!(calls.load(Ordering::SeqCst), 5);
}

#[test]
fn partitions_that_are_not_needed_are_left_alone() {
    let rdd = numbers().map(|n| {
        assert!(n < 4, "partition 2 is asked for");
        n
    });
    assert_eq!(rdd.take(2).unwrap(), [1, 2]);
    let error = rdd.collect().unwrap_err();
    assert_eq!(error.to_string(), "a function of the program panicked: partition 2 is asked for");
}

#[test]
fn keys_are_combined_in_the_order_in_which_they_came() {
    let pairs = Rdd::parallelize(vec![("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)], 3);
    assert_eq!(pairs.reduce_by_key(|a, b| a + b, 1).collect().unwrap(), [("b", 4), ("a", 7), ("c", 4)]);
    assert_eq!(pairs.group_by_key(1).collect().unwrap(), [("b", vec![1, 3]), ("a", vec![2, 5]), ("c", vec![4])]);
    let mut spread = pairs.reduce_by_key(|a, b| a + b, 4).collect().unwrap();
    spread.sort_unstable();
    assert_eq!(spread, [("a", 7), ("b", 4), ("c", 4)]);
}

#[test]
fn joins_pair_what_has_the_same_key() {
    let one = Rdd::parallelize(vec![(1, "a"), (1, "b"), (2, "c")], 2);
    let other = Rdd::parallelize(vec![(1, 10), (3, 30)], 2);
    assert_eq!(one.join(&other, 1).collect().unwrap(), [(1, ("a", 10)), (1, ("b", 10))]);
    let left = one.left_outer_join(&other, 1).collect().unwrap();
    assert_eq!(left, [(1, ("a", Some(10))), (1, ("b", Some(10))), (2, ("c", None))]);
    let right = one.right_outer_join(&other, 1).collect().unwrap();
    assert_eq!(right, [(1, (Some("a"), 10)), (1, (Some("b"), 10)), (3, (None, 30))]);
    assert_eq!(one.full_outer_join(&other, 1).count().unwrap(), 4);
    assert_eq!(one.cogroup(&other, 1).collect().unwrap()[2], (3, (vec![], vec![30])));
}

#[test]
fn rows_are_sorted_spread_and_gathered() {
    let rdd = numbers().sort_by(|n| *n, false);
    assert_eq!(rdd.collect().unwrap(), [5, 4, 3, 2, 1]);
    assert_eq!(rdd.glom().collect().unwrap(), [vec![5, 4], vec![3, 2], vec![1]]);
    assert_eq!(numbers().repartition(2).partition_count(), 2);
    assert_eq!(numbers().union(&numbers()).count().unwrap(), 10);
    assert_eq!(numbers().reduce(|a, b| a + b).unwrap(), Some(15));
    assert_eq!(Rdd::<i64>::empty().reduce(|a, b| a + b).unwrap(), None);
    assert_eq!(Rdd::parallelize(vec![1, 1, 2], 2).distinct().count().unwrap(), 2);
}

#[test]
fn a_function_that_fails_fails_the_action() {
    let error = numbers().foreach(|n| if *n == 3 { Err("three is refused".into()) } else { Ok(()) }).unwrap_err();
    assert_eq!(millstream_common::describe_chain(&error), "a function of the program failed: three is refused");
}
