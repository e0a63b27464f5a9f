//! What a guest finds behind its imports of WASI: nothing, and nothing that waits.

use std::time::{Duration, Instant};

use millstream_wasm::WasmError;

use crate::harness::{answer, batch, call, host, slot, slot_with};
use crate::raw::Guest;

/// A guest that imports one function of WASI and answers with a number.
fn probe(interface: &str, import: &str, number: &str) -> Guest {
    Guest::answering(number).with_wasi(&format!("import {interface};"), import)
}

/// Calls a function that gives a list into a return area and answers with the list's length.
const LENGTH: &str = "(block (result i64) (call $import (i32.const 64)) (i64.load32_u (i32.const 68)))";

#[test]
fn there_is_no_environment_no_argument_and_no_folder() {
    for (interface, function) in [
        ("wasi:cli/environment@0.2.6", "get-environment"),
        ("wasi:cli/environment@0.2.6", "get-arguments"),
        ("wasi:filesystem/preopens@0.2.6", "get-directories"),
    ] {
        let import = format!(r#"(import "{interface}" "{function}" (func $import (param i32)))"#);
        assert_eq!(answer(&slot(&probe(interface, &import, LENGTH))), 0, "{function}");
    }
    let import = r#"(import "wasi:cli/environment@0.2.6" "initial-cwd" (func $import (param i32)))"#;
    let is_some = "(block (result i64) (call $import (i32.const 64)) (i64.load8_u (i32.const 64)))";
    assert_eq!(answer(&slot(&probe("wasi:cli/environment@0.2.6", import, is_some))), 0);
}

#[test]
fn sockets_are_denied() {
    let denied = 1 << 8 | 1;
    for kind in ["tcp", "udp"] {
        let interface = format!("wasi:sockets/{kind}-create-socket@0.2.6");
        let import = format!(r#"(import "{interface}" "create-{kind}-socket" (func $import (param i32 i32)))"#);
        let number = "(block (result i64) (call $import (i32.const 0) (i32.const 64))
                       (i64.or (i64.load8_u (i32.const 64)) (i64.shl (i64.load8_u (i32.const 68)) (i64.const 8))))";
        assert_eq!(answer(&slot(&probe(&interface, &import, number))), denied, "{kind}");
    }
    let world = "import wasi:sockets/instance-network@0.2.6; import wasi:sockets/ip-name-lookup@0.2.6;";
    let imports = r#"
        (import "wasi:sockets/instance-network@0.2.6" "instance-network" (func $network (result i32)))
        (import "wasi:sockets/ip-name-lookup@0.2.6" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))"#;
    let number = "(block (result i64) (call $resolve (call $network) (i32.const 0) (i32.const 0) (i32.const 64))
                   (i64.or (i64.load8_u (i32.const 64)) (i64.shl (i64.load8_u (i32.const 68)) (i64.const 8))))";
    assert_eq!(answer(&slot(&Guest::answering(number).with_wasi(world, imports))), denied);
}

#[test]
fn clocks_stand_at_the_time_of_the_batch() {
    let interface = "wasi:clocks/wall-clock@0.2.6";
    let import = r#"(import "wasi:clocks/wall-clock@0.2.6" "now" (func $now (param i32)))"#;
    let number = "(block (result i64) (call $now (i32.const 64))
                   (i64.add (i64.mul (i64.load (i32.const 64)) (i64.const 1000000000)) (i64.load32_u (i32.const 72))))";
    let slot_of_wall = slot(&probe(interface, import, number));
    assert_eq!(answer(&slot_of_wall), 0, "outside of a batch time has not begun");
    slot_of_wall.begin_batch(batch(1, 7, 1_700_000_000_123));
    assert_eq!([answer(&slot_of_wall), answer(&slot_of_wall)], [1_700_000_000_123_000_000; 2]);

    let interface = "wasi:clocks/monotonic-clock@0.2.6";
    let import = r#"(import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $now (result i64)))"#;
    let steady = slot(&probe(interface, import, "(i64.sub (call $now) (call $now))"));
    assert_eq!(answer(&steady), -1000, "each reading is a microsecond later");
    let first = slot(&probe(interface, import, "(call $now)"));
    first.begin_batch(batch(1, 7, 5));
    assert_eq!([answer(&first), answer(&first)], [5_001_000; 2]);
}

#[test]
fn sleeping_moves_the_guests_clock_and_takes_no_time() {
    let world = "import wasi:io/poll@0.2.6; import wasi:clocks/monotonic-clock@0.2.6;";
    let imports = r#"
        (import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $now (result i64)))
        (import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $after (param i64) (result i32)))
        (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
        (import "wasi:io/poll@0.2.6" "poll" (func $poll (param i32 i32 i32)))"#;
    let hour = 3_600_000_000_000_i64;
    let number = format!(
        "(block (result i64) (local.set $n (call $now)) (call $block (call $after (i64.const {hour})))
          (i64.sub (call $now) (local.get $n)))"
    );
    let start = Instant::now();
    assert_eq!(answer(&slot(&Guest::answering(&number).with_wasi(world, imports))), hour + 1000);
    // Of two waits, the shorter one ends; the number is how many are ready.
    let number = "(block (result i64)
        (i32.store (i32.const 80) (call $after (i64.const -1)))
        (i32.store (i32.const 84) (call $after (i64.const 5)))
        (call $poll (i32.const 80) (i32.const 2) (i32.const 64))
        (i64.add (i64.mul (i64.load32_u (i32.load (i32.const 64))) (i64.const 10)) (i64.load32_u (i32.const 68))))";
    assert_eq!(answer(&slot(&Guest::answering(number).with_wasi(world, imports))), 11);
    // Sleeping for ever in a loop is a loop.
    let forever = "(loop $again (call $block (call $after (i64.const -1))) (br $again)) (unreachable)";
    let sleeper = slot_with(&Guest::calling(forever).with_wasi(world, imports), |limits| {
        limits.deadline = Duration::from_millis(100);
    });
    let error = call(&sleeper, &[1]).unwrap_err();
    let ends = ["more pollables than it may", "did not return"];
    assert!(ends.iter().any(|end| error.to_string().contains(end)), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn random_numbers_belong_to_the_batch() {
    let interface = "wasi:random/random@0.2.6";
    let import = r#"(import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))"#;
    let guest = probe(interface, import, "(call $random)");
    let numbers = |query, number, count| -> Vec<i64> {
        let slot = slot(&guest);
        slot.begin_batch(batch(query, number, 0));
        (0..count).map(|_| answer(&slot)).collect()
    };
    let first = numbers(1, 1, 3);
    assert_eq!(first, numbers(1, 1, 3), "the same batch again");
    assert!(first[0] != first[1] && first[1] != first[2], "each call has its own: {first:?}");
    assert_ne!(first, numbers(1, 2, 3));
    assert_ne!(first, numbers(2, 1, 3));
}

#[test]
fn random_bytes_are_not_for_free() {
    let import = r#"(import "wasi:random/random@0.2.6" "get-random-bytes" (func $bytes (param i64 i32)))"#;
    let number = "(block (result i64) (call $bytes (i64.const 4000000000) (i32.const 64)) (i64.const 0))";
    let error = call(&slot(&probe("wasi:random/random@0.2.6", import, number)), &[1]).unwrap_err();
    assert!(error.to_string().contains("random bytes at once"), "{error}");
}

#[test]
fn an_exit_is_a_fault_of_the_call() {
    let import = r#"(import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))"#;
    let guest = probe("wasi:cli/exit@0.2.6", import, "(block (result i64) (call $exit (i32.const 1)) (i64.const 0))");
    let slot = slot(&guest);
    for _ in 0..2 {
        let error = call(&slot, &[1]).unwrap_err();
        let WasmError::Trap { reason, .. } = &error else { panic!("{error}") };
        assert_eq!(reason, "it ended itself with status 1");
    }
}

#[test]
fn what_it_wrote_to_stderr_is_quoted_when_it_traps() {
    let world = "import wasi:io/streams@0.2.6; import wasi:cli/stderr@0.2.6; import wasi:cli/stdin@0.2.6;";
    let imports = r#"
        (import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))
        (import "wasi:cli/stdin@0.2.6" "get-stdin" (func $stdin (result i32)))
        (import "wasi:io/streams@0.2.6" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
        (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush"
          (func $write (param i32 i32 i32 i32)))"#;
    let mut guest = Guest::calling(
        "(call $write (call $stderr) (i32.const 512) (i32.const 38) (i32.const 64))
         (unreachable)",
    )
    .with_wasi(world, imports);
    guest.more = r#"(data (i32.const 512) "Traceback\n  line 7\0aValueError: no sign")"#.into();
    let error = call(&slot(&guest), &[1]).unwrap_err();
    let WasmError::Trap { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.starts_with("Traceback | line 7 | ValueError: no sign ("), "{reason}");

    // Standard input is at its end: the second case of the error, `closed`.
    let number = "(block (result i64) (call $read (call $stdin) (i64.const 10) (i32.const 64))
                   (i64.add (i64.mul (i64.load8_u (i32.const 64)) (i64.const 10)) (i64.load8_u (i32.const 68))))";
    assert_eq!(answer(&slot(&Guest::answering(number).with_wasi(world, imports))), 11);
    let hoard = "(loop $again (drop (call $stderr)) (br $again)) (unreachable)";
    let error = call(&slot(&Guest::calling(hoard).with_wasi(world, imports)), &[1]).unwrap_err();
    assert!(error.to_string().contains("more streams than it may"), "{error}");
}

#[test]
fn other_worlds_stay_closed() {
    let import = r#"(import "wasi:http/types@0.2.6" "[constructor]fields" (func $import (result i32)))"#;
    let guest = probe("wasi:http/types@0.2.6", import, "(i64.extend_i32_u (call $import))");
    let error = host().load("guest", &guest.component()).unwrap_err();
    let WasmError::ForeignWorld { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("it imports `wasi:http/types@0.2.6`"), "{reason}");
}
