//! Every story of `stories/`, played straight, with restarts, with other partition counts, and with crashes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use streaming_stories::{Story, Variant, crash_everywhere, parse, play};

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("stories")
}

fn story(name: &str) -> Story {
    let text = std::fs::read_to_string(folder().join(format!("{name}.stream"))).unwrap();
    parse(name, &text).unwrap_or_else(|error| panic!("{error:#}"))
}

fn check(name: &str, variant: Variant) {
    if let Err(error) = play(&story(name), variant) {
        panic!("{variant:?}\n{error:#}");
    }
}

/// Stories whose meaning depends on an unbroken run.
fn is_straight_only(name: &str) -> bool {
    story(name).straight_only.is_some()
}

macro_rules! stories {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(mod $name {
            use super::*;
            const NAME: &str = stringify!($name);

            #[test]
            fn is_true() {
                check(NAME, Variant::default());
            }

            #[test]
            fn can_be_replayed_batch_by_batch() {
                if !is_straight_only(NAME) {
                    check(NAME, Variant { replays: true, ..Variant::default() });
                    check(NAME, Variant { replays: true, restart_after_every_batch: true, ..Variant::default() });
                }
            }

            #[test]
            fn survives_a_restart_after_every_batch() {
                if !is_straight_only(NAME) {
                    check(NAME, Variant { restart_after_every_batch: true, ..Variant::default() });
                }
            }

            #[test]
            fn is_true_with_one_two_and_five_partitions() {
                for partitions in [1, 2, 5] {
                    check(NAME, Variant { partitions: Some(partitions), ..Variant::default() });
                }
            }

            #[test]
            fn is_true_with_its_state_spread_anew_after_every_batch() {
                if !is_straight_only(NAME) {
                    check(NAME, Variant { repartition_after_every_batch: true, ..Variant::default() });
                }
            }

            #[test]
            fn is_true_when_no_memory_is_left_for_state() {
                let variant = Variant { state_memory: Some(1), ..Variant::default() };
                check(NAME, variant);
                if !is_straight_only(NAME) {
                    check(NAME, Variant { restart_after_every_batch: true, partitions: Some(3), ..variant });
                }
            }

            #[test]
            fn is_true_with_a_fresh_instance_of_each_plugin_for_every_call() {
                if !story(NAME).plugins.is_empty() {
                    check(NAME, Variant { fresh_instances: true, ..Variant::default() });
                }
            }

            #[test]
            fn survives_a_crash_at_every_durable_write() {
                if !is_straight_only(NAME) {
                    let crashes = crash_everywhere(&story(NAME), Variant::default());
                    let crashes = crashes.unwrap_or_else(|error| panic!("{error:#}"));
                    assert!(crashes >= 10, "{crashes} crashes are too few");
                }
            }
        })*
    };
}

stories!(
    aggregate_plugin,
    aggregate_plugin_faults,
    aggregate_plugin_global,
    aggregate_plugin_merge_fails,
    aggregate_plugin_session,
    aggregate_plugin_window,
    dead_letters,
    division_by_zero,
    drop_duplicates,
    drop_duplicates_for_ever,
    drop_duplicates_within_watermark,
    drop_duplicates_within_watermark_null_time,
    flat_map_groups,
    generator_unnamed,
    global_aggregate,
    having,
    having_alias,
    join_full,
    join_full_using,
    join_inner,
    join_inner_range,
    join_left,
    join_right,
    join_self,
    join_static_using,
    join_semi,
    join_then_window,
    join_three,
    join_windows,
    json_failfast,
    json_tuple,
    late_after_restart,
    lateral_alias,
    limit,
    limit_below_aggregation,
    processor_baskets,
    processor_complete,
    processor_fails,
    processor_faults,
    processor_silence,
    processor_then_window,
    processor_totals,
    rollup_modifier,
    row_errors_fail,
    row_errors_skip,
    session_aggregates,
    session_append,
    session_complete,
    session_dynamic_gap,
    session_having,
    session_then_window,
    session_union,
    skipped_rows,
    sliding_window,
    snapshots,
    star_of_struct,
    union_first_without_watermark,
    union_max,
    union_min,
    union_min_idle,
    union_other_delays,
    watermark_append,
    watermark_of_two_reads,
    watermark_update,
    watermark_without_no_data_batches,
    window_of_window,
    within_group,
    word_count_complete,
);

#[test]
fn a_crash_at_any_durable_write_while_state_is_spread_anew_changes_nothing() {
    for name in ["drop_duplicates_within_watermark", "word_count_complete"] {
        let variant = Variant { repartition_after_every_batch: true, ..Variant::default() };
        let crashes = crash_everywhere(&story(name), variant).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(crashes >= 50, "{crashes} crashes are too few");
    }
}

#[test]
fn every_story_in_the_folder_is_played() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let stems: BTreeSet<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(stems, NAMES.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn a_false_story_is_told_with_steps_offsets_sink_and_plan() {
    let text = "# Goal: fail.\nsource s (v bigint)\nquery SELECT v FROM s\nmode append\nadd s 1\nbatch\n----\n2\n";
    let error = play(&parse("false", text).unwrap(), Variant::default()).unwrap_err().to_string();
    for part in ["=>   6  batch", "s: (none, 0]", "0: [\"1\"]", "== Logical plan =="] {
        assert!(error.contains(part), "{part} in {error}");
    }
}
