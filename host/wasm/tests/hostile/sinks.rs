//! Sinks that misbehave, each in one of their calls: the batch fails in time with a reason, the neighbour's answers are
//! right, and the slot is as good as new.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef};
use millstream_common::{BatchId, OutputMode};
use millstream_wasm::{FaultPolicy, PluginLimits, PluginSlot, SinkOutcome, SinkTarget, WasmError, sink_fields};

use crate::exports::{component, wit};
use crate::harness::{call, honest, host, limits, numbers};

const SPIN: &str = "(loop $again (br $again)) (unreachable)";
const TRAP: &str = "(unreachable)";

/// Memory: 8 is an empty list; at 64 stands the list of one sink `s` of any columns and all modes; at 512 `ok(true)`, at
/// 576 `ok`, with an empty list.
const MODULE: &str = r#"
    (memory (export "memory") 4)
    (global $calls (mut i32) (i32.const 0))
    (data (i32.const 64) "\60\00\00\00\01\00\00\00")
    (data (i32.const 96) "\b0\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\07\00\00\00\00\00\00\00\00\00\00\00")
    (data (i32.const 176) "s")
    (data (i32.const 516) "\01")
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536))"#;

/// A transactional sink that takes everything, but for the calls in `changes`.
fn guest(changes: &[(&str, &str)]) -> Vec<u8> {
    guest_of(&wit(), "transactional-sink-plugin", changes)
}

fn guest_of(wit: &Path, world: &str, changes: &[(&str, &str)]) -> Vec<u8> {
    component(wit, world, MODULE, &|interface, name| {
        if let Some((_, body)) = changes.iter().find(|(changed, _)| *changed == name) {
            return (*body).to_owned();
        }
        let answer = match name {
            "describe" if interface.contains("/describe@") => 8,
            "describe" => 64,
            "open" => 512,
            _ => 576,
        };
        format!("(i32.const {answer})")
    })
}

fn slot(bytes: &[u8], change: impl FnOnce(&mut PluginLimits)) -> Arc<PluginSlot> {
    let mut limits = limits();
    change(&mut limits);
    let component = host().load("guest", bytes).unwrap();
    PluginSlot::new("guest", host(), component, limits, FaultPolicy::Skip)
}

fn target() -> SinkTarget {
    SinkTarget { query_id: "q".into(), partition: 0, batch: BatchId(1), options: vec![("a".into(), "b".into())] }
}

fn write(slot: &PluginSlot) -> Result<SinkOutcome, WasmError> {
    let rows = RecordBatch::try_from_iter([("x", numbers([1, 2, 3]))]).unwrap();
    let field: FieldRef = Arc::new(Field::new("x", DataType::Int64, true));
    let fields = sink_fields([&field]).unwrap();
    slot.write_to_sink("s", &target(), (OutputMode::Append, &fields), &[rows])
}

/// Does it three times beside an honest neighbour.
fn contain(changes: &[(&str, &str)], what: fn(&PluginSlot) -> Option<WasmError>, is: fn(&WasmError) -> bool) {
    let (neighbour, start) = (honest(), Instant::now());
    let slot = slot(&guest(changes), |_| {});
    for _ in 0..3 {
        let error = what(&slot).expect("it must not succeed");
        assert!(is(&error), "{changes:?}: {error:?}");
        assert_eq!(call(&neighbour, &[1, 2, 3]).unwrap(), [1, 2, 3], "the neighbour");
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

fn writing(slot: &PluginSlot) -> Option<WasmError> {
    write(slot).err()
}

fn committing(slot: &PluginSlot) -> Option<WasmError> {
    slot.commit_sink("s", &target(), b"token").err()
}

fn aborting(slot: &PluginSlot) -> Option<WasmError> {
    slot.abort_sink("s", &target(), b"token").err()
}

fn in_call(error: &WasmError, call: &str) -> bool {
    error.to_string().contains(&format!("`s.{call}`"))
}

#[test]
fn an_honest_sink_takes_everything() {
    let slot = slot(&guest(&[]), |_| {});
    let outcome = write(&slot).unwrap();
    assert_eq!((outcome.is_wanted, outcome.rows, outcome.token), (true, 3, Some(Vec::new())));
    assert!(committing(&slot).is_none() && aborting(&slot).is_none());
    assert_eq!(slot.component().sinks()[0].to_string(), "sink s(any columns), append, update, complete, exactly once");
}

#[test]
fn a_sink_that_spins_is_left_at_the_deadline() {
    for call in ["open", "process", "prepare", "close"] {
        contain(&[(call, SPIN)], writing, |error| matches!(error, WasmError::Deadline { .. }));
    }
    contain(&[("commit", SPIN)], committing, |error| matches!(error, WasmError::Deadline { .. }));
    contain(&[("abort", SPIN)], aborting, |error| matches!(error, WasmError::Deadline { .. }));
}

#[test]
fn a_sink_that_traps_fails_its_batch_under_every_policy() {
    contain(&[("open", TRAP)], writing, |error| matches!(error, WasmError::Trap { .. }) && in_call(error, "open"));
    contain(&[("process", TRAP)], writing, |error| {
        matches!(error, WasmError::Trap { .. }) && in_call(error, "process")
    });
    contain(&[("prepare", TRAP)], writing, |error| {
        matches!(error, WasmError::Trap { .. }) && in_call(error, "prepare")
    });
    contain(&[("close", TRAP)], writing, |error| matches!(error, WasmError::Trap { .. }) && in_call(error, "close"));
    contain(&[("commit", TRAP)], committing, |error| {
        matches!(error, WasmError::Trap { .. }) && in_call(error, "commit")
    });
    contain(&[("abort", TRAP)], aborting, |error| matches!(error, WasmError::Trap { .. }) && in_call(error, "abort"));
}

#[test]
fn a_sink_that_spins_after_it_has_trapped_is_not_even_asked_to_close() {
    contain(&[("process", TRAP), ("close", SPIN)], writing, |error| matches!(error, WasmError::Trap { .. }));
}

#[test]
fn one_that_traps_while_a_failure_is_told_to_it_ends_in_the_failure() {
    let refuses = "(i32.store8 (i32.const 640) (i32.const 1)) (i32.store8 (i32.const 644) (i32.const 0))
        (i32.store (i32.const 648) (i32.const 176)) (i32.store (i32.const 652) (i32.const 1)) (i32.const 640)";
    contain(
        &[("process", refuses), ("close", TRAP)],
        writing,
        |error| matches!(error, WasmError::Refused { message, .. } if message == "s"),
    );
}

#[test]
fn a_token_is_small() {
    let token = |len: u32| {
        format!(
            "(i32.store (i32.const 640) (i32.const 0)) (i32.store (i32.const 644) (i32.const 65536))
            (i32.store (i32.const 648) (i32.const {len})) (i32.const 640)"
        )
    };
    contain(
        &[("prepare", &token(65_537))],
        writing,
        |error| matches!(error, WasmError::Garbage { reason, .. } if reason.contains("65537 bytes")),
    );
    contain(&[("prepare", &token(u32::MAX >> 1))], writing, |error| {
        matches!(error, WasmError::Garbage { .. } | WasmError::Trap { .. } | WasmError::ResultTooLarge { .. })
    });
    let slot = slot(&guest(&[("prepare", &token(65_536))]), |_| {});
    assert_eq!(write(&slot).unwrap().token.map(|token| token.len()), Some(65_536));
}

#[test]
fn lies_are_garbage() {
    let is = |error: &WasmError| matches!(error, WasmError::Garbage { .. } | WasmError::Trap { .. });
    for (call, lie) in [
        ("open", "(i32.const -16)"),
        ("open", "(i32.store8 (i32.const 640) (i32.const 9)) (i32.const 640)"),
        (
            "process",
            "(i32.store (i32.const 644) (i32.const -8)) (i32.store (i32.const 648) (i32.const 1)) (i32.const 640)",
        ),
        (
            "process",
            "(i32.store (i32.const 644) (i32.const 700)) (i32.store (i32.const 648) (i32.const 0x0fffffff)) (i32.const 640)",
        ),
        ("close", "(i32.const 577)"),
        (
            "prepare",
            "(i32.store (i32.const 644) (i32.const 262140)) (i32.store (i32.const 648) (i32.const 100)) (i32.const 640)",
        ),
    ] {
        contain(&[(call, lie)], writing, is);
    }
    // A row that there is not: number 3 of 3.
    let blames = "(i32.store (i32.const 644) (i32.const 704)) (i32.store (i32.const 648) (i32.const 1))
        (i32.store (i32.const 704) (i32.const 3)) (i32.const 640)";
    contain(
        &[("process", blames)],
        writing,
        |error| matches!(error, WasmError::Garbage { reason, .. } if reason.contains("row 3 of 3")),
    );
}

#[test]
fn memory_ends_at_the_limit() {
    let grows = "(loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) (unreachable)";
    for call in ["open", "process", "prepare", "close"] {
        contain(&[(call, grows)], writing, |error| matches!(error, WasmError::Memory { .. }));
    }
}

#[test]
fn nothing_is_remembered_from_one_batch_to_the_next() {
    // Says yes in its first call only.
    let once = "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (i32.store8 (i32.const 644) (i32.eq (global.get $calls) (i32.const 1))) (i32.const 640)";
    let slot = slot(&guest(&[("open", once)]), |_| {});
    for _ in 0..3 {
        assert!(write(&slot).unwrap().is_wanted);
    }
    assert_eq!(slot.take_metrics().instances, 3);
}

#[test]
fn another_form_of_the_interface_is_a_foreign_world() {
    let folder = tempfile::tempdir().unwrap();
    let rewritten = |from: &str, to: &str| {
        for file in std::fs::read_dir(wit()).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "wit") {
                let text = std::fs::read_to_string(&file).unwrap().replace(from, to);
                std::fs::write(folder.path().join(file.file_name().unwrap()), text).unwrap();
            }
        }
    };
    rewritten("result<bool, error>", "result<u32, error>");
    let error = host().load("guest", &guest_of(folder.path(), "sink-plugin", &[])).unwrap_err();
    let WasmError::ForeignWorld { reason, .. } = error else { panic!("{error}") };
    assert!(reason.contains("`open` of `sink` has other types"), "{reason}");

    rewritten("    close: func(failure: option<string>) -> result<_, error>;", "");
    let error = host().load("guest", &guest_of(folder.path(), "sink-plugin", &[])).unwrap_err();
    let WasmError::ForeignWorld { reason, .. } = error else { panic!("{error}") };
    assert!(reason.contains("lacks `close`"), "{reason}");

    rewritten("    export sink;\n", "");
    let error = host().load("guest", &guest_of(folder.path(), "transactional-sink-plugin", &[])).unwrap_err();
    let WasmError::BadDescription { reason, .. } = error else { panic!("{error}") };
    assert!(reason.contains("`sink-transaction` without `sink`"), "{reason}");
}
