//! The compiler in a process of its own: it gets a component on its standard input and answers with code on its
//! standard output. What takes too long or too much memory is killed, and this process goes on.
//!
//! The program is this one, started again with arguments that lead to [`compile_stdin`].
//!
//! Rule of its life: one process per component; it is gone before the answer is used.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::CompileLimits;
use super::code::Code;
use crate::engine;
use crate::error::WasmError;

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of code per byte of component that are believed; Wasmtime makes about four.
const CODE_RATIO: u64 = 64;
const CODE_LEAST: u64 = 16 << 20;
/// Bytes of what the process says when it fails.
const COMPLAINT: u64 = 2 << 10;
/// Wall time for each unit of CPU time, on machines that do other things too.
const PATIENCE: u32 = 10;

/// The program that compiles: one that calls [`compile_stdin`] when it is started so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerProgram {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Compiles what comes in on standard input, and writes the code to standard output: the other side of a
/// [`CompilerProgram`].
///
/// # Errors
///
/// The reason, in words for standard error.
pub fn compile_stdin() -> Result<(), String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    let engine = engine::without_pool().map_err(|e| e.to_string())?;
    let code = Code::compile(&engine, &bytes).map_err(|e| format!("{e:#}"))?;
    let mut out = std::io::stdout().lock();
    out.write_all(code.bytes()).and_then(|()| out.flush()).map_err(|e| e.to_string())
}

/// How a process ended.
enum End {
    Done(std::process::ExitStatus),
    TooLong,
    TooLarge,
}

pub(super) fn compile(
    program: &CompilerProgram,
    limits: &CompileLimits,
    plugin: &str,
    bytes: &[u8],
) -> Result<Code, WasmError> {
    let broken = |e: std::io::Error| WasmError::Engine {
        reason: format!("cannot compile in a process of its own, `{}`: {e}", program.program.display()),
    };
    let mut child = Command::new(&program.program)
        .args(&program.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(broken)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let most = (bytes.len() as u64).saturating_mul(CODE_RATIO).max(CODE_LEAST);
    let (end, code, complaint) = std::thread::scope(|scope| {
        // A process that is killed closes its side; so these end with it.
        scope.spawn(move || stdin.is_some_and(|mut stdin| stdin.write_all(bytes).is_ok()));
        let code = scope.spawn(move || read(stdout, most));
        let complaint = scope.spawn(move || read(stderr, COMPLAINT));
        let end = watch(&mut child, limits);
        (end, code.join().unwrap_or_default(), complaint.join().unwrap_or_default())
    });
    let limit = |what: String, key| WasmError::CompileLimit { plugin: plugin.to_owned(), what, key };
    match end.map_err(broken)? {
        End::TooLong => Err(limit(format!("it took longer than {:?}", limits.time), "compile_time")),
        End::TooLarge => {
            Err(limit(format!("it took more than {} bytes of memory", limits.memory_bytes), "compile_memory"))
        }
        End::Done(status) if status.success() && code.len() as u64 <= most => Ok(Code::from_own_compiler(code)),
        End::Done(status) if status.success() => {
            Err(limit(format!("its code has more than {most} bytes"), "component_max"))
        }
        // Told in words: the component is no good. Without: the process was killed by the system or fell.
        End::Done(status) => {
            let told = String::from_utf8_lossy(&complaint).trim().to_owned();
            let reason = if told.is_empty() { format!("its compiler ended with {status}") } else { told };
            Err(WasmError::NotAComponent { plugin: plugin.to_owned(), reason })
        }
    }
}

/// What comes out of a pipe, one byte more than `most` at most.
fn read(pipe: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let kept = pipe.by_ref().take(most + 1).read_to_end(&mut bytes);
        // The rest is read and dropped, so that the process is not stuck.
        let _ = kept.and_then(|_| std::io::copy(&mut pipe, &mut std::io::sink()));
    }
    bytes
}

/// Waits for the end of a process, or makes one.
fn watch(child: &mut Child, limits: &CompileLimits) -> std::io::Result<End> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Done(status));
        }
        let wall = start.elapsed();
        let long = cpu_time(child.id()).unwrap_or(wall) > limits.time || wall > limits.time.saturating_mul(PATIENCE);
        let large = memory_bytes(child.id()).is_some_and(|bytes| bytes > limits.memory_bytes);
        if long || large {
            child.kill()?;
            child.wait()?;
            return Ok(if large { End::TooLarge } else { End::TooLong });
        }
        std::thread::sleep(LOOK);
    }
}

/// CPU time of a process, where the system tells.
fn cpu_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Memory of a process, where the system tells.
fn memory_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10)
}
