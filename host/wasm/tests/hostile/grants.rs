//! What is granted by name: there for those who have it, and for nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_wasm::{
    AccountLimits, Beyond, FaultPolicy, HttpGrant, Permission, Permissions, PluginLimits, PluginSlot, Scope, Tenant,
    WasmError,
};

use crate::harness::{answer, batch, call, host, slot_with};
use crate::raw::Guest;

fn importing(interface: &str, function: &str, signature: &str, number: &str) -> Guest {
    let import = format!(r#"(import "millstream:plugin/{interface}@0.2.0" "{function}" (func $import {signature}))"#);
    Guest::answering(number).with_wasi(&format!("import millstream:plugin/{interface}@0.2.0;"), &import)
}

fn clock() -> Guest {
    importing("clock", "batch-time-ms", "(result i64)", "(call $import)")
}

fn random(length: u32) -> Guest {
    let number = format!(
        "(block (result i64) (call $import (i32.const {length}) (i32.const 64)) (i64.load (i32.load (i32.const 64))))"
    );
    importing("random", "bytes", "(param i32 i32)", &number)
}

/// Gives the value of the option `a`, which has eight bytes; -1 if there is none.
fn config() -> Guest {
    let number = "(block (result i64)
        (i32.store8 (i32.const 512) (i32.const 97))
        (call $import (i32.const 512) (i32.const 1) (i32.const 64))
        (if (result i64) (i32.load8_u (i32.const 64))
          (then (i64.load (i32.load (i32.const 68)))) (else (i64.const -1))))";
    importing("config", "get", "(param i32 i32 i32)", number)
}

/// Sends no requests and gives the number of answers.
fn http() -> Guest {
    let number =
        "(block (result i64) (call $import (i32.const 0) (i32.const 0) (i32.const 64)) (i64.load32_u (i32.const 68)))";
    importing("http", "send", "(param i32 i32 i32)", number)
}

fn granted(guest: &Guest, permissions: Permissions) -> Arc<PluginSlot> {
    slot_with(guest, |limits| limits.permissions = Arc::new(permissions))
}

#[test]
fn what_was_not_granted_is_refused_and_a_call_would_trap() {
    for (guest, permission) in [
        (clock(), Permission::Clock),
        (random(8), Permission::Random),
        (config(), Permission::Config),
        (http(), Permission::Http),
    ] {
        let slot = granted(&guest, Permissions::default());
        assert_eq!(slot.component().asks_for().into_iter().collect::<Vec<_>>(), [permission]);
        let error = slot.check_granted(&slot.component()).unwrap_err();
        assert!(matches!(&error, WasmError::NotGranted { permission: told, .. } if *told == permission), "{error}");
        let error = call(&slot, &[1]).unwrap_err();
        assert!(matches!(&error, WasmError::Trap { reason, .. } if reason.contains("not granted")), "{error}");

        let honest = slot_with(&Guest::default(), |_| {});
        let error = honest.swap(slot.component()).unwrap_err();
        assert!(matches!(error, WasmError::NotGranted { .. }), "a swap grants nothing: {error}");
    }
}

#[test]
fn the_time_is_that_of_the_batch() {
    let slot = granted(&clock(), Permissions { clock: true, ..Permissions::default() });
    slot.check_granted(&slot.component()).unwrap();
    slot.begin_batch(batch(1, 3, 1_700_000_000_000));
    assert_eq!(answer(&slot), 1_700_000_000_000);
}

#[test]
fn random_numbers_come_again_with_their_batch() {
    let permissions = Permissions { random: true, ..Permissions::default() };
    let numbers = |number| {
        let slot = granted(&random(8), permissions.clone());
        slot.begin_batch(batch(7, number, 0));
        [answer(&slot), answer(&slot)]
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
    assert_ne!(numbers(1)[0], numbers(1)[1]);
    let greedy = granted(&random(65537), permissions.clone());
    assert!(call(&greedy, &[1]).unwrap_err().to_string().contains("more than 64 KiB"));
}

#[test]
fn random_numbers_are_those_of_the_partition_whatever_the_others_do() {
    let permissions = Permissions { random: true, ..Permissions::default() };
    let fresh = || {
        let slot = granted(&random(8), permissions.clone());
        slot.begin_batch(batch(7, 1, 0));
        slot
    };
    let of = |slot: &PluginSlot, partition: u32| Scope::default().partition(partition).enter(|| answer(slot));
    let alone = fresh();
    let (second, fifth) = ([of(&alone, 2), of(&alone, 2)], [of(&alone, 5), of(&alone, 5)]);
    // In another order, as several threads would ask.
    let mixed = fresh();
    let (a, b, c, d) = (of(&mixed, 5), of(&mixed, 2), of(&mixed, 5), of(&mixed, 2));
    assert_eq!(([b, d], [a, c]), (second, fifth));
    let all = [second, fifth, [of(&alone, 0), of(&alone, 1)]].concat();
    let distinct: std::collections::BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}

#[test]
fn options_are_those_of_the_query() {
    let options = BTreeMap::from([("a".to_owned(), "12345678".to_owned())]);
    let slot = granted(&config(), Permissions { config: Some(options), ..Permissions::default() });
    assert_eq!(answer(&slot).to_le_bytes(), *b"12345678");
    let slot = granted(&config(), Permissions { config: Some(BTreeMap::new()), ..Permissions::default() });
    assert_eq!(answer(&slot), -1);
}

#[test]
fn requests_go_out_where_hosts_were_granted() {
    let grant = HttpGrant { hosts: vec!["example.com".parse().unwrap()], private: false, response_bytes: 1000 };
    let slot = granted(&http(), Permissions { http: Some(grant), ..Permissions::default() });
    assert_eq!(answer(&slot), 0);
}

const SPIN: &str = "(loop $again (br $again)) (unreachable)";

fn limited(beyond: Beyond) -> impl FnOnce(&mut PluginLimits) {
    move |limits| {
        limits.deadline = Duration::from_millis(100);
        limits.account =
            AccountLimits { cpu_per_second: Some(Duration::from_millis(20)), beyond, ..AccountLimits::default() };
    }
}

/// Calls until an account does not pay: on a busy machine a call gets little CPU time before its deadline.
fn overdrawn(slot: &PluginSlot) -> bool {
    for _ in 0..100 {
        match call(slot, &[1]).unwrap_err() {
            WasmError::Deadline { .. } => {}
            WasmError::Overdrawn { for_ever, .. } => return for_ever,
            error => panic!("{error}"),
        }
    }
    panic!("it is let have all that it wants");
}

#[test]
fn who_has_spent_its_cpu_time_waits_fails_or_is_done() {
    assert!(!overdrawn(&slot_with(&Guest::calling(SPIN), limited(Beyond::Reject))));
    let terminated = slot_with(&Guest::calling(SPIN), limited(Beyond::Terminate));
    assert!(overdrawn(&terminated));
    std::thread::sleep(Duration::from_millis(100));
    assert!(matches!(call(&terminated, &[1]).unwrap_err(), WasmError::Overdrawn { for_ever: true, .. }));

    let throttled = slot_with(&Guest::calling(SPIN), limited(Beyond::Throttle));
    let mut metrics = throttled.take_metrics();
    for _ in 0..100 {
        assert!(matches!(call(&throttled, &[1]).unwrap_err(), WasmError::Deadline { .. }));
        metrics = throttled.take_metrics();
        assert_eq!((metrics.calls, metrics.traps), (1, 1));
        if metrics.throttled_us > 0 {
            break;
        }
    }
    assert!(metrics.throttled_us > 0 && metrics.cpu_us > 0, "{metrics:?}");
}

#[test]
fn a_call_that_takes_more_cpu_time_than_it_may_ends_long_before_its_deadline() {
    let start = Instant::now();
    let limited = |limits: &mut PluginLimits| {
        limits.deadline = Duration::from_secs(300);
        limits.cpu_per_call = Some(Duration::from_millis(30));
    };
    let spinning = slot_with(&Guest::calling(SPIN), limited);
    for _ in 0..2 {
        let error = call(&spinning, &[1]).unwrap_err();
        assert!(matches!(&error, WasmError::CpuTime { limit, .. } if limit.as_millis() == 30), "{error}");
        assert!(error.to_string().contains("more than 30ms of CPU time in `f`"), "{error}");
    }
    let metrics = spinning.take_metrics();
    assert_eq!((metrics.calls, metrics.traps), (2, 2));
    assert!(metrics.cpu_us >= 60_000, "{metrics:?}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    // The limit is one of each call, not of all together.
    let honest = slot_with(&Guest::default(), limited);
    for _ in 0..1000 {
        assert_eq!(call(&honest, &[1]).unwrap(), [1]);
    }
    // The wall still counts where it comes first.
    let late = slot_with(&Guest::calling(SPIN), |limits| {
        limits.deadline = Duration::from_millis(50);
        limits.cpu_per_call = Some(Duration::from_secs(300));
    });
    assert!(matches!(call(&late, &[1]).unwrap_err(), WasmError::Deadline { .. }));
}

#[test]
fn what_plugins_of_a_tenant_do_is_counted_together() {
    let tenant = Tenant { name: "counted".into(), limits: AccountLimits::default() };
    let of_tenant = |guest: &Guest| {
        slot_with(guest, |limits| {
            limits.deadline = Duration::from_millis(100);
            limits.tenant = Some(tenant.clone());
        })
    };
    let (honest, spinning) = (of_tenant(&Guest::default()), of_tenant(&Guest::calling(SPIN)));
    assert_eq!(call(&honest, &[1, 2, 3]).unwrap(), [1, 2, 3]);
    call(&spinning, &[1, 2]).unwrap_err();
    let (name, spent) = honest.tenant_spent().unwrap();
    assert_eq!((name.as_str(), spent.calls, spent.rows, spent.traps), ("counted", 2, 5, 1));
    assert!(spent.cpu > Duration::ZERO && spent.memory_high_bytes > 0, "{spent:?}");
    assert!(slot_with(&Guest::default(), |_| {}).tenant_spent().is_none());
}

#[test]
fn plugins_of_a_tenant_share_its_memory() {
    let limits = AccountLimits { memory_bytes: Some(1 << 20), ..AccountLimits::default() };
    let tenant = Tenant { name: "small".into(), limits };
    let grow =
        "(drop (memory.grow (i32.const 8))) (call $answer (local.get $rows) (local.get $buffers) (local.get $len))";
    let of_tenant = || slot_with(&Guest::calling(grow), |limits| limits.tenant = Some(tenant.clone()));
    let (first, second) = (of_tenant(), of_tenant());
    assert_eq!(call(&first, &[1]).unwrap(), [1]);
    // Growing fails in the guest, which does not care; so its answer counts.
    assert_eq!(call(&second, &[1]).unwrap(), [1]);
    let spent = host().account_of(&tenant).spent();
    assert!(spent.memory_bytes <= 1 << 20 && spent.instances == 2, "{spent:?}");
    assert!(second.take_metrics().memory_bytes < first.take_metrics().memory_bytes);
    let third = of_tenant();
    let fourth = of_tenant();
    let errors: Vec<_> = [third, fourth].iter().filter_map(|slot| call(slot, &[1]).err()).collect();
    assert!(errors.iter().any(|error| matches!(error, WasmError::Overdrawn { .. })), "{errors:?}");
    drop((first, second));
    assert_eq!(host().account_of(&tenant).spent().instances, 0);
}

#[test]
fn a_storm_of_traps_ends() {
    let limits = PluginLimits { isolation_time: Duration::from_secs(2), ..PluginLimits::default() };
    let component = host().load("guest", &Guest::calling("(unreachable)").component()).unwrap();
    let slot = PluginSlot::new("guest", host(), component, limits, FaultPolicy::Skip);
    let start = std::time::Instant::now();
    let rows = 20_000;
    let outcome = slot.call_scalar("f", rows, &[crate::harness::numbers(0..rows as i64)]).unwrap();
    assert_eq!((outcome.values.len(), outcome.faults.len()), (rows, rows));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(slot.take_metrics().calls < 2000);
}
