//! Functions of plugins on streams: `text` and `heat` of `plugins/`, compiled here.

use crate::harness::{World, alone, locked, seconds, sorted};
use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Float64Type;
use millstream_dstream::{DStreamError, RddQueue};
use millstream_wasm::build::{self, Part, Profile};
use millstream_wasm::{FaultPolicy, PluginHost, PluginLimits, PluginSlot};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

fn slot(name: &str) -> Arc<PluginSlot> {
    static HOST: OnceLock<Arc<PluginHost>> = OnceLock::new();
    let host = Arc::clone(HOST.get_or_init(|| PluginHost::new().unwrap()));
    let target = build::guest_target_dir();
    let toolchain = build::find_toolchain(&target, &|_| {}).unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name);
    let files = build::build_with(&toolchain, &folder, Part::Library, Profile::Release, &target, &|_| {}).unwrap();
    let component = host.load(name, &std::fs::read(&files[0]).unwrap()).unwrap();
    let limits = PluginLimits { deadline: seconds(20), ..PluginLimits::default() };
    PluginSlot::new(name, host, component, limits, FaultPolicy::Fail)
}

fn lines(rows: &[String]) -> Vec<ArrayRef> {
    vec![Arc::new(StringArray::from_iter_values(rows))]
}

#[test]
fn a_table_function_makes_many_rows_and_a_scalar_function_one() {
    let _alone = alone();
    let (context, clock) = crate::harness::context();
    let (texts, clicks) = (RddQueue::new(), RddQueue::new());
    let text = context.queue_stream(&texts).unwrap();
    let words = text.flat_map_plugin(&slot("text"), "words", lines, |line: &String, columns, at| {
        (columns[0].as_string::<i32>().value(at).to_owned(), line.len())
    });
    let words = sorted(&words);
    type Click = (String, i64, i64, f64, i64);
    let heat = context.queue_stream(&clicks).unwrap().map_plugin(
        &slot("heat"),
        "heat",
        |rows: &[Click]| {
            let whole = |of: fn(&Click) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) as ArrayRef;
            let dwell = Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.3)));
            vec![whole(|row| row.1), whole(|row| row.2), dwell, whole(|row| row.4)]
        },
        |row, heats, at| (row.0.clone(), (heats.as_primitive::<Float64Type>().value(at) * 100.0).round() as i64),
    );
    let heat = sorted(&heat);
    let stepper = context.start_stepwise().unwrap();
    texts.push(vec!["apache spark".to_owned(), "rocks".to_owned()]);
    clicks.push(vec![("041.html".to_owned(), 7, 5, 0.9, -1)]);
    clock.advance(seconds(2));
    stepper.run_due().unwrap();
    let word = |word: &str, length| (word.to_owned(), length);
    assert_eq!(*locked(&words), [(1, vec![word("apache", 12), word("rocks", 5), word("spark", 12)]), (2, vec![])]);
    assert_eq!(locked(&heat)[0].1, [("041.html".to_owned(), 456)]);
}

#[test]
fn a_function_that_the_component_does_not_have_fails_the_batch() {
    let _alone = alone();
    let world = World::new();
    let (context, stream) = world.context();
    let wrong = stream.map_plugin(&slot("text"), "words", lines, |_, _, _| 0);
    let _seen = sorted(&wrong);
    let stepper = context.start_stepwise().unwrap();
    world.say(&["a"]);
    world.tick();
    let error = stepper.run_due().unwrap_err();
    assert!(matches!(&*error, DStreamError::Job { .. }), "{error}");
    drop(stepper);
    // The batch is defined with that component; without it, it cannot run again.
    let (context, stream) = world.context();
    let _seen = sorted(&stream);
    let error = context.start_stepwise().unwrap_err();
    assert!(error.to_string().contains("plugin `text`"), "{error}");
}
