//! One guest per way to misbehave, each with how it must end. A behaviour without an end does not compile.

use std::time::{Duration, Instant};

use millstream_wasm::{FaultPolicy, PluginSlot, WasmError};

use crate::harness::{call, honest, host, limits};
use crate::raw::{Function, Guest};

/// Where a guest is stopped.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// It never becomes a plugin.
    Load,
    /// Each call fails, and the slot is as good as new.
    Call,
    /// It is let have its way, because that harms nobody.
    Nowhere,
}

/// Lets a guest loose beside an honest one. `is` says whether it ended as it must.
fn contain(guest: &Guest, stage: Stage, is: fn(&WasmError) -> bool) {
    let start = Instant::now();
    let (neighbour, bytes) = (honest(), guest.component());
    let right = || assert_eq!(call(&neighbour, &[1, 2, 3]).unwrap(), [1, 2, 3], "the neighbour");
    right();
    match (stage, host().load("guest", &bytes)) {
        (Stage::Load, Err(error)) => assert!(is(&error), "{error:?}"),
        (Stage::Load, Ok(_)) => panic!("it was let in"),
        (_, Err(error)) => panic!("{error}"),
        (stage, Ok(component)) => {
            let slot = PluginSlot::new("guest", host(), component, limits(), FaultPolicy::Fail);
            for _ in 0..2 {
                match (stage, call(&slot, &[1, 2, 3])) {
                    (Stage::Nowhere, Ok(values)) => assert_eq!(values.len(), 3),
                    (Stage::Call, Err(error)) => assert!(is(&error), "{error:?}"),
                    (_, result) => panic!("{result:?}"),
                }
                right();
            }
        }
    }
    right();
    // A second and less on a machine that does nothing else.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

macro_rules! hostile {
    ($($name:ident: $guest:expr => $stage:ident $($pattern:pat)?,)*) => {
        const BEHAVIOURS: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            let is: fn(&WasmError) -> bool = |_error| false $(|| matches!(_error, $pattern))?;
            contain(&$guest, Stage::$stage, is);
        })*
    };
}

const SPIN: &str = "(loop $again (br $again)) (unreachable)";
const HONEST: &str = "(call $answer (local.get $rows) (local.get $buffers) (local.get $len))";

/// Does something, then answers honestly.
fn first(body: &str) -> Guest {
    Guest::calling(&format!("{body} {HONEST}"))
}

/// Honest but for what stands beside its functions.
fn with(more: &str) -> Guest {
    Guest { more: more.into(), ..Guest::default() }
}

/// As [`Guest::calling`], with something beside.
fn calling_with(more: &str, body: &str) -> Guest {
    Guest { more: more.into(), ..Guest::calling(body) }
}

fn allocating(realloc: &str) -> Guest {
    Guest { realloc: realloc.into(), ..Guest::default() }
}

fn describing(describe: &str) -> Guest {
    Guest { describe: Some(describe.into()), ..Guest::default() }
}

/// Describes one function, changed.
fn described(change: impl FnOnce(&mut Function)) -> Guest {
    let mut function = Function::default();
    change(&mut function);
    Guest { functions: vec![function], ..Guest::default() }
}

/// Answers with a record of its own: words at the place of the result, from the discriminant on.
fn answers(words: &[u32]) -> Guest {
    let store =
        |(i, word): (usize, &u32)| format!("(i32.store (i32.const {}) (i32.const {}))", 64 + 4 * i, *word as i32);
    let stores: String = words.iter().enumerate().map(store).collect();
    Guest::calling(&format!("{stores} (i32.const 64)"))
}

/// The guest logs, which its world lets it.
fn logging(body: &str) -> Guest {
    let import = r#"(import "millstream:plugin/log@0.2.0" "log" (func $log (param i32 i32 i32)))"#;
    Guest { imports: import.into(), ..Guest::calling(body) }
}

/// The guest has pollables.
fn polling(body: &str) -> Guest {
    let imports = r#"
        (import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $after (param i64) (result i32)))
        (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
        (import "wasi:io/poll@0.2.6" "[resource-drop]pollable" (func $drop (param i32)))
        (import "wasi:io/poll@0.2.6" "poll" (func $poll (param i32 i32 i32)))"#;
    Guest::calling(body).with_wasi("import wasi:io/poll@0.2.6; import wasi:clocks/monotonic-clock@0.2.6;", imports)
}

/// Types that nest ever deeper.
fn nested(depth: u32) -> Guest {
    described(|function| {
        let mut fields = vec![(b"y".to_vec(), "+l", 1); depth as usize];
        fields.push((b"y".to_vec(), "l", 0));
        function.results = fields;
    })
}

hostile! {
    // Time.
    spins_in_a_call: Guest::calling(SPIN) => Call WasmError::Deadline { .. },
    spins_in_describe: describing(SPIN) => Load WasmError::Deadline { .. },
    spins_in_its_allocator: allocating(SPIN) => Call WasmError::Deadline { .. },
    spins_while_it_starts: with("(func $spin (loop $again (br $again))) (start $spin)") => Load WasmError::Deadline { .. },
    spins_after_it_has_answered:
        with(r#"(func (export "cabi_post_millstream:plugin/scalar@0.2.0#call") (param i32) (loop $again (br $again)))"#)
        => Call WasmError::Deadline { .. },
    spins_after_it_has_described_itself:
        with(r#"(func (export "cabi_post_millstream:plugin/describe@0.2.0#describe") (param i32) (loop $a (br $a)))"#)
        => Load WasmError::Deadline { .. },
    spins_in_a_table_function:
        Guest { interface: "table", functions: vec![Function { kind: 1, ..Function::default() }], ..Guest::calling(SPIN) }
        => Call WasmError::Deadline { .. },
    fills_its_memory_for_ever:
        Guest::calling("(loop $again (memory.fill (i32.const 0) (i32.const 7) (i32.const 262144)) (br $again)) (unreachable)")
        => Call WasmError::Deadline { .. },
    calls_the_host_for_ever:
        logging("(loop $again (call $log (i32.const 4) (i32.const 0) (i32.const 1)) (br $again)) (unreachable)")
        => Call WasmError::Deadline { .. },
    sleeps_for_ever:
        polling("(local.set $i (call $after (i64.const -1))) (loop $again (call $block (local.get $i)) (br $again)) (unreachable)")
        => Call WasmError::Deadline { .. },

    // Memory, tables, stack.
    grows_without_end:
        Guest::calling("(loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) (unreachable)")
        => Call WasmError::Memory { .. },
    grows_and_goes_on:
        first("(loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))") => Nowhere,
    begins_with_a_gigabyte: Guest { memory: "16384".into(), ..Guest::default() }
        => Load WasmError::Memory { .. } | WasmError::Engine { .. } | WasmError::ForeignWorld { .. } | WasmError::NotAComponent { .. },
    has_a_table_without_end:
        calling_with("(table $t 1 funcref)", "(loop $again (br_if $again (i32.ge_s (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 0)))) (unreachable)")
        => Call WasmError::Trap { .. },
    begins_with_a_giant_table: with("(table 9000000 funcref)")
        => Load WasmError::Memory { .. } | WasmError::Trap { .. } | WasmError::Garbage { .. } | WasmError::Engine { .. } | WasmError::ForeignWorld { .. } | WasmError::NotAComponent { .. },
    has_fifty_memories: with(&"(memory 1)".repeat(50))
        => Load WasmError::NotAComponent { .. } | WasmError::ForeignWorld { .. } | WasmError::Engine { .. } | WasmError::Garbage { .. },
    calls_itself_without_end: Guest::calling(
        "(call $call (local.get $function) (local.get $rows) (local.get $buffers) (local.get $len))")
        => Call WasmError::Trap { .. },
    shares_its_memory_and_waits:
        with("(memory $s 1 1 shared) (func (drop (memory.atomic.wait32 $s (i32.const 0) (i32.const 0) (i64.const -1))))")
        => Load WasmError::NotAComponent { .. },

    // Traps.
    is_unreachable: Guest::calling("(unreachable)") => Call WasmError::Trap { .. },
    divides_by_zero: first("(drop (i32.div_u (local.get $rows) (i32.const 0)))") => Call WasmError::Trap { .. },
    reads_beyond_its_memory: first("(drop (i32.load (i32.const -8)))") => Call WasmError::Trap { .. },
    writes_beyond_its_memory: first("(i64.store (i32.const -4) (i64.const 1))") => Call WasmError::Trap { .. },
    converts_what_has_no_number: first("(drop (i32.trunc_f64_s (f64.const nan)))") => Call WasmError::Trap { .. },
    calls_a_function_of_another_type:
        calling_with("(table $t 1 funcref) (type $none (func)) (elem (table $t) (i32.const 0) func $bump)",
            "(call_indirect $t (type $none) (i32.const 0)) (unreachable)")
        => Call WasmError::Trap { .. },
    calls_through_an_empty_table:
        calling_with("(table $t 1 funcref) (type $none (func))", "(call_indirect $t (type $none) (i32.const 0)) (unreachable)")
        => Call WasmError::Trap { .. },
    traps_while_it_starts: with("(func $fall unreachable) (start $fall)") => Load WasmError::Trap { .. },
    traps_in_describe: describing("(unreachable)") => Load WasmError::Trap { .. },

    // Lies about results.
    answers_beyond_its_memory: Guest::calling("(i32.const -16)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    answers_at_an_odd_place: Guest::calling("(i32.const 17)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    answers_neither_yes_nor_no: answers(&[7, 3, 0, 0, 0, 0]) => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    answers_with_an_unknown_error: answers(&[1, 9, 0, 0]) => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    lies_about_the_length_of_its_buffers: answers(&[0, 3, 64, 0xffff_ffff, 0, 0])
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. } | WasmError::ResultTooLarge { .. },
    lies_about_where_a_buffer_ends:
        Guest::calling("(i32.store (i32.add (local.get $buffers) (i32.const 12)) (i32.const 0x7fffffff))
            (call $answer (local.get $rows) (local.get $buffers) (local.get $len))")
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. } | WasmError::ResultTooLarge { .. },
    lies_about_where_a_buffer_begins:
        Guest::calling("(i32.store (i32.add (local.get $buffers) (i32.const 8)) (i32.const -8))
            (call $answer (local.get $rows) (local.get $buffers) (local.get $len))")
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    gives_the_same_bytes_a_thousand_times:
        Guest::calling("(local.set $i (i32.const 0))
            (loop $again
              (i32.store (i32.add (i32.const 65536) (i32.mul (local.get $i) (i32.const 8))) (i32.const 0))
              (i32.store (i32.add (i32.const 65540) (i32.mul (local.get $i) (i32.const 8))) (i32.const 262144))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $again (i32.lt_u (local.get $i) (i32.const 1000))))
            (call $answer (local.get $rows) (i32.const 65536) (i32.const 1000))")
        => Call WasmError::ResultTooLarge { .. },
    gives_more_buffers_than_it_has_columns: Guest::calling("(call $answer (local.get $rows) (i32.const 131072) (i32.const 8000))")
        => Call WasmError::Garbage { .. } | WasmError::ResultTooLarge { .. },
    gives_no_buffers: Guest::calling("(call $answer (local.get $rows) (local.get $buffers) (i32.const 0))") => Call WasmError::Garbage { .. },
    gives_a_row_more:
        Guest::calling("(call $answer (i32.add (local.get $rows) (i32.const 1)) (local.get $buffers) (local.get $len))")
        => Call WasmError::Garbage { .. },
    gives_four_billion_rows: Guest::calling("(call $answer (i32.const -1) (local.get $buffers) (local.get $len))")
        => Call WasmError::Garbage { .. },
    gives_no_rows: Guest::calling("(call $answer (i32.const 0) (i32.const 0) (i32.const 0))") => Call WasmError::Garbage { .. },
    gives_half_a_value:
        Guest::calling("(i32.store (i32.add (local.get $buffers) (i32.const 12)) (i32.const 20))
            (call $answer (local.get $rows) (local.get $buffers) (local.get $len))")
        => Call WasmError::Garbage { .. },
    blames_rows_that_are_not_there:
        Guest::calling("(drop (call $answer (local.get $rows) (local.get $buffers) (local.get $len)))
            (i32.store (i32.const 32) (i32.const 128)) (i32.store (i32.const 36) (i32.const 1))
            (i32.store (i32.const 128) (i32.const -1)) (i32.const 16)")
        => Call WasmError::Garbage { .. },
    blames_rows_in_disorder:
        Guest::calling("(drop (call $answer (local.get $rows) (local.get $buffers) (local.get $len)))
            (i32.store (i32.const 32) (i32.const 128)) (i32.store (i32.const 36) (i32.const 2))
            (i32.store (i32.const 128) (i32.const 2)) (i32.store (i32.const 140) (i32.const 1)) (i32.const 16)")
        => Call WasmError::Garbage { .. } | WasmError::Refused { .. },
    complains_in_broken_text:
        Guest::calling("(i32.store (i32.const 512) (i32.const 0xfffefdfc))
            (i32.store8 (i32.const 64) (i32.const 1)) (i32.store (i32.const 68) (i32.const 2))
            (i32.store (i32.const 72) (i32.const 512)) (i32.store (i32.const 76) (i32.const 4)) (i32.const 64)")
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    complains_at_length: answers(&[1, 2, 65_536, 190_000]) => Call WasmError::Refused { .. },

    // Lies about memory that the host asked for.
    allocates_beyond_its_memory: allocating("(i32.const -65536)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    allocates_at_odd_places: allocating("(i32.const 4097)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    falls_while_it_allocates: allocating("(unreachable)") => Call WasmError::Trap { .. },
    allocates_over_its_own_description: allocating("(i32.const 1024)") => Nowhere,
    calls_the_host_while_it_allocates:
        Guest { realloc: "(call $log (i32.const 4) (i32.const 0) (i32.const 1)) (call $bump (local.get $len))".into(), ..logging(HONEST) }
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },

    // Lies about itself.
    describes_nothing: Guest { functions: vec![], ..Guest::default() } => Load WasmError::BadDescription { .. },
    describes_a_billion_functions:
        describing("(i32.store (i32.const 64) (i32.const 1024)) (i32.store (i32.const 68) (i32.const 1000000000)) (i32.const 64)")
        => Load WasmError::Garbage { .. } | WasmError::Trap { .. } | WasmError::ResultTooLarge { .. },
    describes_more_functions_than_a_plugin_has:
        Guest { functions: (0..300).map(|i| Function { name: format!("f{i}").into(), ..Function::default() }).collect(), memory: "16".into(), ..Guest::default() }
        => Load WasmError::BadDescription { .. },
    describes_a_function_twice:
        Guest { functions: vec![Function::default(), Function::default()], ..Guest::default() } => Load WasmError::BadDescription { .. },
    describes_an_argument_twice:
        described(|function| function.arguments = vec![(b"x".to_vec(), "l", 0), (b"x".to_vec(), "l", 0)]) => Load WasmError::BadDescription { .. },
    has_sql_for_a_name: described(|function| function.name = "f(1); drop table t --".into()) => Load WasmError::BadDescription { .. },
    has_no_name: described(|function| function.name = Vec::new()) => Load WasmError::BadDescription { .. },
    has_a_name_of_a_hundred_thousand_letters:
        described(|function| function.name = vec![b'f'; 100_000]) => Load WasmError::BadDescription { .. },
    has_a_name_that_is_no_text:
        described(|function| function.name = vec![0xff, 0xfe]) => Load WasmError::Garbage { .. } | WasmError::Trap { .. },
    has_a_type_that_there_is_not: described(|function| function.results[0].1 = "tdX") => Load WasmError::BadDescription { .. },
    has_types_without_end: nested(500) => Load WasmError::BadDescription { .. },
    has_more_fields_than_a_function_may: described(|function| {
        function.arguments = (0..2000).map(|i| (format!("x{i}").into_bytes(), "l", 0)).collect();
    }) => Load WasmError::BadDescription { .. },
    counts_four_billion_children: described(|function| function.results[0] = (b"y".to_vec(), "+s", u32::MAX)) => Load WasmError::BadDescription { .. },
    is_of_a_kind_that_there_is_not: described(|function| function.kind = 9) => Load WasmError::Garbage { .. } | WasmError::Trap { .. },
    says_table_and_has_none: described(|function| function.kind = 1) => Load WasmError::BadDescription { .. },
    has_two_results: described(|function| function.results.push((b"z".to_vec(), "l", 0))) => Load WasmError::BadDescription { .. },

    // Handles that it was not given.
    forges_a_handle: polling("(call $block (i32.const 77)) (unreachable)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    drops_a_forged_handle: polling("(call $drop (i32.const 77)) (unreachable)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    uses_a_handle_that_it_dropped:
        polling("(local.set $i (call $after (i64.const 1))) (call $drop (local.get $i)) (call $block (local.get $i)) (unreachable)")
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    drops_a_handle_twice:
        polling("(local.set $i (call $after (i64.const 1))) (call $drop (local.get $i)) (call $drop (local.get $i)) (unreachable)")
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    hoards_handles: polling("(loop $again (drop (call $after (i64.const 1))) (br $again)) (unreachable)") => Call WasmError::Trap { .. },
    polls_nothing: polling("(call $poll (i32.const 0) (i32.const 0) (i32.const 64)) (unreachable)") => Call WasmError::Trap { .. },
    polls_handles_that_are_none:
        polling("(call $poll (i32.const 65536) (i32.const 1000) (i32.const 64)) (unreachable)") => Call WasmError::Garbage { .. } | WasmError::Trap { .. },

    // The log.
    floods_the_log:
        logging(&format!("(local.set $i (i32.const 2000))
            (loop $again (call $log (i32.const 2) (i32.const 65536) (i32.const 60000))
              (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) {HONEST}"))
        => Nowhere,
    logs_broken_text:
        logging(&format!("(i32.store (i32.const 512) (i32.const -1)) (call $log (i32.const 2) (i32.const 512) (i32.const 4)) {HONEST}"))
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    logs_what_is_not_in_its_memory:
        logging(&format!("(call $log (i32.const 2) (i32.const -65536) (i32.const 1000000)) {HONEST}"))
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
    logs_at_a_level_that_there_is_not:
        logging(&format!("(call $log (i32.const 99) (i32.const 0) (i32.const 1)) {HONEST}"))
        => Call WasmError::Garbage { .. } | WasmError::Trap { .. },
}

#[test]
fn the_suite_is_as_large_as_it_was() {
    let mut names = BEHAVIOURS.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BEHAVIOURS.len());
    assert!(BEHAVIOURS.len() >= 75, "{}", BEHAVIOURS.len());
}
