//! Where the fixed part of a call goes: one row, by a ladder of calls of which each has one thing more than the one before.
//!
//! The first rungs call a guest written by hand that does nothing, through Wasmtime alone: so what they cost is the
//! engine's. Then comes the component of the benchmark, still through Wasmtime alone, and last the host's own way to it. A
//! rung's cost is its time less that of the rung before; all rungs are timed in turns.

use std::hint::black_box;

use arrow::array::ArrayRef;
use millstream_wasm::PluginSlot;
use wasmtime::component::{Component, ComponentType, Instance, Lift, Linker, Lower, TypedFunc};
use wasmtime::{Config, Engine, Store};

const CALLS: usize = 400;
const ROUNDS: usize = 101;
const BEYOND: u64 = 1 << 40;

/// Takes what `scalar.call` takes, and answers what it answers, without looking at anything.
const NOTHING: &str = r#"(component
  (core module $code
    (memory (export "memory") 1)
    (global $top (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
      (global.set $top (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "enter"))
    (func (export "take") (param i32 i32 i32 i32) (global.set $top (i32.const 1024)))
    (func (export "answer") (param i32 i32 i32 i32) (result i32)
      (global.set $top (i32.const 1024))
      (i32.const 64))
    ;; ok, one row, two buffers at 96, no errors of rows
    (data (i32.const 64) "\00\00\00\00\01\00\00\00\60\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00")
    ;; no bytes of validity, eight of values at 128
    (data (i32.const 96) "\80\00\00\00\00\00\00\00\80\00\00\00\08\00\00\00"))
  (core instance $code (instantiate $code))
  (type $batch (tuple u32 (list (list u8))))
  (type $output (result (tuple $batch (list (tuple u32 string))) (error string)))
  (func (export "enter") (canon lift (core func $code "enter")))
  (func (export "take") (param "function" u32) (param "arguments" $batch)
    (canon lift (core func $code "take") (memory (core memory $code "memory")) (realloc (core func $code "realloc"))))
  (func (export "answer") (param "function" u32) (param "arguments" $batch) (result $output)
    (canon lift (core func $code "answer") (memory (core memory $code "memory")) (realloc (core func $code "realloc")))))"#;

type Buffers<'a> = (u32, &'a [&'a [u8]]);
type Bytes = (u32, Vec<Vec<u8>>);
/// What it has more than the one before, and the call.
type Rung<'a> = (&'static str, Box<dyn FnMut() + 'a>);
type Answer = Result<(Bytes, Vec<(u32, String)>), String>;

#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
struct BatchIn<'a> {
    rows: u32,
    buffers: &'a [&'a [u8]],
}

#[derive(Clone, ComponentType, Lift)]
#[component(record)]
struct Batch {
    rows: u32,
    buffers: Vec<Vec<u8>>,
}

#[derive(Clone, ComponentType, Lift)]
#[component(record)]
#[allow(dead_code, reason = "only lifted")]
struct RowError {
    row: u32,
    message: String,
}

#[derive(Clone, ComponentType, Lift)]
#[component(record)]
struct Output {
    values: Batch,
    #[component(name = "row-errors")]
    row_errors: Vec<RowError>,
}

#[derive(Clone, Debug, ComponentType, Lift)]
#[component(variant)]
#[allow(dead_code, reason = "only lifted")]
enum Refusal {
    #[component(name = "invalid-input")]
    InvalidInput(String),
    #[component(name = "unavailable")]
    Unavailable(String),
    #[component(name = "internal")]
    Internal(String),
}

/// A guest in a store of its own, as deadlines want it.
fn instance(engine: &Engine, bytes: &[u8]) -> (Store<()>, Instance) {
    let component = Component::new(engine, wat::parse_bytes(bytes).unwrap()).unwrap();
    let mut linker = Linker::new(engine);
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(BEYOND);
    let instance = linker.instantiate(&mut store, &component).unwrap();
    (store, instance)
}

fn scalar_call(
    store: &mut Store<()>,
    instance: &Instance,
) -> TypedFunc<(u32, BatchIn<'static>), (Result<Output, Refusal>,)> {
    let interface = instance.get_export_index(&mut *store, None, "millstream:plugin/scalar@0.2.0").unwrap();
    let call = instance.get_export_index(&mut *store, Some(&interface), "call").unwrap();
    instance.get_typed_func(store, call).unwrap()
}

/// Prints what each part costs for `function`, which is the first of the component and takes `arguments`.
pub(crate) fn print(slot: &PluginSlot, bytes: &[u8], function: &str, arguments: &[ArrayRef], cpu_ns: fn() -> f64) {
    let mut config = Config::new();
    config.epoch_interruption(true);
    let engine = Engine::new(&config).unwrap();

    // As the host passes them: no bitmap where there are no nulls.
    let datas: Vec<_> = arguments.iter().map(|column| column.to_data()).collect();
    let buffers: Vec<&[u8]> = datas.iter().flat_map(|data| [[].as_slice(), data.buffers()[0].as_slice()]).collect();
    assert_eq!(buffers.len(), 4, "the table says so");
    // Typed functions want arguments of any life; the benchmark ends with them.
    let buffers: &'static [&'static [u8]] =
        buffers.iter().map(|bytes| &*bytes.to_vec().leak()).collect::<Vec<_>>().leak();

    let (mut enter_store, nothing) = instance(&engine, NOTHING.as_bytes());
    let enter: TypedFunc<(), ()> = nothing.get_typed_func(&mut enter_store, "enter").unwrap();
    let (mut take_store, nothing) = instance(&engine, NOTHING.as_bytes());
    let take: TypedFunc<(u32, Buffers<'static>), ()> = nothing.get_typed_func(&mut take_store, "take").unwrap();
    let (mut answer_store, nothing) = instance(&engine, NOTHING.as_bytes());
    let answer: TypedFunc<(u32, Buffers<'static>), (Answer,)> =
        nothing.get_typed_func(&mut answer_store, "answer").unwrap();
    let (mut guest_store, guest) = instance(&engine, bytes);
    let call = scalar_call(&mut guest_store, &guest);

    // The same value by both ways, before anything is timed.
    let output = call.call(&mut guest_store, (0, BatchIn { rows: 1, buffers })).unwrap().0.unwrap();
    let by_host = slot.call_scalar(function, 1, arguments).unwrap().values.to_data();
    assert_eq!((output.values.rows, output.row_errors.len()), (1, 0));
    assert_eq!(output.values.buffers.last().unwrap().as_slice(), by_host.buffers()[0].as_slice());

    let mut rungs: [Rung; 5] = [
        (
            "into a guest and back, with its deadline",
            Box::new(move || {
                enter_store.set_epoch_deadline(BEYOND);
                enter.call(&mut enter_store, ()).unwrap();
            }),
        ),
        (
            "arguments: five allocations of a guest that only counts up, four buffers copied",
            Box::new(move || {
                take_store.set_epoch_deadline(BEYOND);
                take.call(&mut take_store, (0, (1, buffers))).unwrap();
            }),
        ),
        (
            "result: two buffers lifted",
            Box::new(move || {
                answer_store.set_epoch_deadline(BEYOND);
                black_box(answer.call(&mut answer_store, (0, (1, buffers))).unwrap().0.unwrap());
            }),
        ),
        (
            "the guest: its allocator, the SDK, the function of one row, giving back",
            Box::new(move || {
                guest_store.set_epoch_deadline(BEYOND);
                black_box(call.call(&mut guest_store, (0, BatchIn { rows: 1, buffers })).unwrap().0.unwrap());
            }),
        ),
        (
            "the host: the instance, limits, accounts, arrays to buffers and back, their validation",
            Box::new(|| drop(black_box(slot.call_scalar(function, 1, arguments).unwrap()))),
        ),
    ];
    let mut times = vec![Vec::with_capacity(ROUNDS); rungs.len()];
    for _ in 0..ROUNDS {
        for ((_, rung), times) in rungs.iter_mut().zip(&mut times) {
            let start = cpu_ns();
            (0..CALLS).for_each(|_| rung());
            times.push((cpu_ns() - start) / CALLS as f64);
        }
    }
    println!("\nwhere the fixed part goes: one row, `{function}`, two columns in and one out, ns per call");
    let mut before = 0.0;
    for ((name, _), times) in rungs.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        println!("{:>8.0}  {name}", median - before);
        before = median;
    }
    println!("{before:>8.0}  together");
}
