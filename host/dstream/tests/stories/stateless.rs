//! Operations within a batch.

use crate::harness::{alone, context, over_queue, seconds, sorted};
use millstream_dstream::{Combiner, RddQueue};

#[test]
fn rows_are_mapped_filtered_and_made_many() {
    let seen = over_queue(vec![vec!["a b", "c"], vec![]], |_, lines| {
        lines
            .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .filter(|word| word != "b")
            .map(|word| word + "!")
    });
    assert_eq!(seen, [(1, vec!["a!".to_owned(), "c!".to_owned()]), (2, vec![])]);
}

#[test]
fn a_count_is_one_row_also_of_an_empty_batch() {
    assert_eq!(over_queue(vec![vec![7, 8, 9], vec![]], |_, rows| rows.count()), [(1, vec![3]), (2, vec![0])]);
}

#[test]
fn a_reduced_batch_is_one_row_or_none() {
    let seen = over_queue(vec![vec![1, 2, 3], vec![]], |_, rows| rows.reduce(|a, b| a + b));
    assert_eq!(seen, [(1, vec![6]), (2, vec![])]);
}

#[test]
fn values_are_counted() {
    let seen = over_queue(vec![vec!["a", "b", "a"], vec!["b"]], |_, rows| rows.count_by_value());
    assert_eq!(seen, [(1, vec![("a", 2), ("b", 1)]), (2, vec![("b", 1)])]);
}

#[test]
fn values_of_a_key_are_grouped_reduced_and_combined() {
    let batch = || vec![vec![("a", 1), ("b", 2), ("a", 3)]];
    let grouped = over_queue(batch(), |_, pairs| pairs.group_by_key());
    assert_eq!(grouped, [(1, vec![("a", vec![1, 3]), ("b", vec![2])])]);
    let reduced = over_queue(batch(), |_, pairs| pairs.reduce_by_key(|a, b| a * 10 + b));
    assert_eq!(reduced, [(1, vec![("a", 13), ("b", 2)])]);
    let combined = over_queue(batch(), |_, pairs| {
        pairs.combine_by_key(|v| (v, 1), |(sum, n), v| (sum + v, n + 1), |(a, n), (b, m)| (a + b, n + m))
    });
    assert_eq!(combined, [(1, vec![("a", (4, 2)), ("b", (2, 1))])]);
    let mapped =
        over_queue(batch(), |_, pairs| pairs.map_values(|v| v + 1).flat_map_values(|v| vec![v; v as usize - 2]));
    assert_eq!(mapped, [(1, vec![("a", 4), ("a", 4), ("b", 3)])]);
}

#[test]
fn partitions_can_be_seen_and_changed() {
    let seen = over_queue(vec![vec![1, 2, 3, 4]], |_, rows| rows.repartition(2).glom().map(|part| part.len()));
    assert_eq!(seen, [(1, vec![2, 2])]);
    let sums = over_queue(vec![vec![1, 2, 3]], |_, rows| rows.map_partitions(|part| [part.iter().sum::<i64>()]));
    assert_eq!(sums, [(1, vec![6])]);
}

#[test]
fn two_streams_are_joined_batch_by_batch() {
    let _alone = alone();
    let (context, clock) = context();
    let (one, two) = (RddQueue::new(), RddQueue::new());
    let left = context.queue_stream(&one).unwrap();
    let right = context.queue_stream(&two).unwrap();
    let inner = sorted(&left.join(&right));
    let left_outer = sorted(&left.left_outer_join(&right));
    let right_outer = sorted(&left.right_outer_join(&right));
    let full = sorted(&left.full_outer_join(&right));
    let cogrouped = sorted(&left.cogroup(&right));
    let stepper = context.start_stepwise().unwrap();
    one.push(vec![("a", 1), ("b", 2)]);
    two.push(vec![("a", 'x'), ("a", 'y'), ("c", 'z')]);
    one.push(vec![("c", 3)]);
    clock.advance(seconds(2));
    assert_eq!(stepper.run_due().unwrap(), 2);
    let take = |seen: &crate::harness::Seen<_>| std::mem::take(&mut *crate::harness::locked(seen));
    assert_eq!(take(&inner), [(1, vec![("a", (1, 'x')), ("a", (1, 'y'))]), (2, vec![])]);
    let seen = std::mem::take(&mut *crate::harness::locked(&left_outer));
    assert_eq!(seen[0].1, [("a", (1, Some('x'))), ("a", (1, Some('y'))), ("b", (2, None))]);
    assert_eq!(seen[1].1, [("c", (3, None))]);
    let seen = std::mem::take(&mut *crate::harness::locked(&right_outer));
    assert_eq!(seen[0].1, [("a", (Some(1), 'x')), ("a", (Some(1), 'y')), ("c", (None, 'z'))]);
    let seen = std::mem::take(&mut *crate::harness::locked(&full));
    assert_eq!(seen[0].1.len(), 4);
    let seen = std::mem::take(&mut *crate::harness::locked(&cogrouped));
    assert_eq!(seen[0].1, [("a", (vec![1], vec!['x', 'y'])), ("b", (vec![2], vec![])), ("c", (vec![], vec!['z']))]);
}

#[test]
fn streams_are_united_and_transformed_together() {
    let _alone = alone();
    let (context, clock) = context();
    let (one, two) = (RddQueue::new(), RddQueue::new());
    let (left, right) = (context.queue_stream(&one).unwrap(), context.queue_stream(&two).unwrap());
    let united = sorted(&context.union(&[left.clone(), right.clone()]).unwrap());
    let together = context.transform(&[left.clone(), right.clone()], |rows, _| rows[0].union(&rows[1]).map(|n| n + 1));
    let together = sorted(&together.unwrap());
    let with = sorted(&left.transform_with(&right, |one, two, time| {
        let time = time.millis();
        one.union(two).map(move |n| i64::from(n) + time)
    }));
    let top = sorted(&left.transform(|rows| {
        millstream_dstream::Rdd::parallelize(rows.sort_by(|n| *n, false).take(1).unwrap_or_default(), 1)
    }));
    let stepper = context.start_stepwise().unwrap();
    one.push(vec![1, 5, 3]);
    two.push(vec![10]);
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    assert_eq!(*crate::harness::locked(&united), [(1, vec![1, 3, 5, 10])]);
    assert_eq!(*crate::harness::locked(&together), [(1, vec![2, 4, 6, 11])]);
    assert_eq!(*crate::harness::locked(&with), [(1, vec![1001, 1003, 1005, 1010])]);
    assert_eq!(*crate::harness::locked(&top), [(1, vec![5])]);
}

#[test]
fn a_transformation_may_combine_by_hand() {
    let seen = over_queue(vec![vec![("a", 1), ("a", 2)]], |_, pairs| {
        let combiner = Combiner::new(
            |v: i64| vec![v],
            |mut all: Vec<i64>, v| {
                all.push(v);
                all
            },
            |mut a: Vec<i64>, b| {
                a.extend(b);
                a
            },
        );
        pairs.transform(move |rows| rows.combine_by_key(&combiner, 1))
    });
    assert_eq!(seen, [(1, vec![("a", vec![1, 2])])]);
}
