//! Compiling in a process of its own, and the cache of compiled components. The process is this program, started again:
//! therefore it has a `main` of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test that is a program")]

#[allow(dead_code, reason = "shared with another test")]
#[path = "hostile/raw.rs"]
mod raw;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use millstream_wasm::{
    CacheOptions, Compilations, CompileLimits, CompilerProgram, FaultPolicy, PluginHost, PluginHostOptions,
    PluginLimits, PluginSlot, WasmError, compile_stdin,
};
use raw::Guest;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("compile") => match compile_stdin() {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        },
        Some("spin") => loop {
            std::hint::black_box(1);
        },
        Some("sleep") => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        Some("eat") => {
            let mut eaten = Vec::new();
            loop {
                eaten.push(vec![1_u8; 1 << 20]);
                std::hint::black_box(&eaten);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Some("fall") => std::process::abort(),
        _ => tests(),
    }
}

fn tests() -> ExitCode {
    let tests: [(&str, fn()); 8] = [
        ("a_component_compiled_elsewhere_runs_here", a_component_compiled_elsewhere_runs_here),
        ("what_cannot_be_compiled_is_told_in_the_compilers_words", what_cannot_be_compiled_is_told),
        ("a_compiler_that_takes_too_long_is_killed", a_compiler_that_takes_too_long_is_killed),
        ("a_compiler_that_takes_too_much_memory_is_killed", a_compiler_that_takes_too_much_memory_is_killed),
        ("a_compiler_that_falls_is_the_components_fault", a_compiler_that_falls_is_the_components_fault),
        ("a_bomb_harms_nobody", a_bomb_harms_nobody),
        ("what_was_compiled_is_never_compiled_again", what_was_compiled_is_never_compiled_again),
        ("a_swap_and_a_restart_compile_only_what_is_new", a_swap_and_a_restart_compile_only_what_is_new),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed", tests.len());
    ExitCode::SUCCESS
}

fn options(deed: &str, change: impl FnOnce(&mut CompileLimits)) -> PluginHostOptions {
    let mut compile = CompileLimits::default();
    change(&mut compile);
    let compiler = CompilerProgram { program: std::env::current_exe().unwrap(), arguments: vec![deed.into()] };
    PluginHostOptions { compile, compiler: Some(compiler), ..PluginHostOptions::default() }
}

fn load(options: &PluginHostOptions, bytes: &[u8]) -> Result<(), WasmError> {
    load_with(&PluginHost::with(options).unwrap(), bytes)
}

fn load_with(host: &Arc<PluginHost>, bytes: &[u8]) -> Result<(), WasmError> {
    let host = Arc::clone(host);
    let component = host.load("guest", bytes)?;
    let slot = PluginSlot::new("guest", host, component, PluginLimits::default(), FaultPolicy::Fail);
    let argument: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let values = slot.call_scalar("f", 3, &[argument])?.values;
    assert_eq!(values.as_primitive::<Int64Type>().values(), &[1, 2, 3]);
    Ok(())
}

fn honest() -> Vec<u8> {
    Guest::default().component()
}

fn a_component_compiled_elsewhere_runs_here() {
    load(&options("compile", |_| {}), &honest()).unwrap();
}

fn what_cannot_be_compiled_is_told() {
    let mut torn = honest();
    torn.truncate(torn.len() - 20);
    let error = load(&options("compile", |_| {}), &torn).unwrap_err();
    assert!(matches!(&error, WasmError::NotAComponent { reason, .. } if reason.contains("unexpected end")), "{error}");
}

fn is_limit(error: &WasmError, wanted: &str) -> bool {
    matches!(error, WasmError::CompileLimit { key, .. } if *key == wanted)
}

fn a_compiler_that_takes_too_long_is_killed() {
    for deed in ["spin", "sleep"] {
        let start = Instant::now();
        let limited = options(deed, |limits| limits.time = Duration::from_millis(100));
        let error = load(&limited, &honest()).unwrap_err();
        assert!(is_limit(&error, "compile_time"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(20), "{deed} {:?}", start.elapsed());
    }
}

fn a_compiler_that_takes_too_much_memory_is_killed() {
    let error = load(&options("eat", |limits| limits.memory_bytes = 64 << 20), &honest()).unwrap_err();
    assert!(is_limit(&error, "compile_memory"), "{error}");
    let error = load(&options("compile", |limits| limits.component_bytes = 100), &honest()).unwrap_err();
    assert!(is_limit(&error, "component_max"), "{error}");
}

fn a_compiler_that_falls_is_the_components_fault() {
    let error = load(&options("fall", |_| {}), &honest()).unwrap_err();
    assert!(
        matches!(&error, WasmError::NotAComponent { reason, .. } if reason.contains("its compiler ended")),
        "{error}"
    );
}

/// Functions that take the compiler far longer than their size would make one think.
fn a_bomb_harms_nobody() {
    let blocks = 2000;
    let body = format!("{}{}", "(block (br_if 0 (local.get 0))".repeat(blocks), ")".repeat(blocks));
    // A table keeps the functions, which nobody calls.
    let table: String = (0..60).map(|i| format!("(func $b{i} (param i32) {body})")).collect();
    let names: String = (0..60).map(|i| format!(" $b{i}")).collect();
    let bomb = Guest { more: format!("{table}(table 60 funcref)(elem (i32.const 0) func{names})"), ..Guest::default() };
    let limited = options("compile", |limits| limits.time = Duration::from_millis(30));
    let start = Instant::now();
    let error = load(&limited, &bomb.component()).unwrap_err();
    assert!(is_limit(&error, "compile_time"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    load(&options("compile", |_| {}), &honest()).unwrap();
}

fn what_was_compiled_is_never_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cached = |deed: &str| {
        let mut options = options(deed, |_| {});
        options.cache = Some(CacheOptions { folder: folder.path().to_owned(), limit_bytes: 1 << 30 });
        options
    };
    load(&cached("compile"), &honest()).unwrap();
    // A compiler that falls is not asked.
    load(&cached("fall"), &honest()).unwrap();
    // In this process the same entry is good.
    let mut here = cached("fall");
    here.compiler = None;
    load(&here, &honest()).unwrap();
    let entries =
        |folder: &Path| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(entries(folder.path()).len(), 1);

    let entry = entries(folder.path()).remove(0);
    let mut bytes = std::fs::read(&entry).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(&entry, bytes).unwrap();
    assert!(load(&cached("fall"), &honest()).is_err(), "a damaged entry is not run");
    load(&cached("compile"), &honest()).unwrap();
    load(&cached("fall"), &honest()).unwrap();
}

/// One process swaps to and fro, and another one goes on: each component is compiled once in all.
fn a_swap_and_a_restart_compile_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options("compile", |_| {});
    options.cache = Some(CacheOptions { folder: folder.path().to_owned(), limit_bytes: 1 << 30 });
    let next = Guest { more: "(func $another)".to_owned(), ..Guest::default() }.component();
    let host = PluginHost::with(&options).unwrap();
    let mut compiled = Vec::new();
    for component in [&honest(), &next, &honest(), &next] {
        load_with(&host, component).unwrap();
        compiled.push(host.compilations().compiled);
    }
    assert_eq!(compiled, [1, 2, 2, 2]);
    let restarted = PluginHost::with(&options).unwrap();
    for component in [&next, &honest(), &next] {
        load_with(&restarted, component).unwrap();
    }
    let Compilations { compiled, from_cache, refused } = restarted.compilations();
    assert_eq!((compiled, from_cache, refused), (0, 2, 0));
}
