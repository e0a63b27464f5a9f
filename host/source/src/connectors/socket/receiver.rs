//! The thread that reads lines from the connection, and the buffer between it and the source.

use millstream_common::Clock;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread waits before it looks again whether it should end.
const WAIT: Duration = Duration::from_millis(100);

/// A line and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) arrived_ms: i64,
}

/// The lines that were received and not released.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) kept: VecDeque<Line>,
    bytes: usize,
    ended: bool,
}

impl Lines {
    /// Drops the first `count` lines.
    pub(super) fn drop_first(&mut self, count: usize) {
        for line in self.kept.drain(..count.min(self.kept.len())) {
            self.bytes -= cost(&line);
        }
    }
}

/// What a line costs in memory, about.
fn cost(line: &Line) -> usize {
    line.text.len() + size_of::<Line>()
}

/// Shared by thread and source.
#[derive(Debug, Default)]
struct Shared {
    lines: Mutex<Lines>,
    room: Condvar,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts the thread over an open connection.
    pub(super) fn start(name: &str, stream: TcpStream, limit_bytes: usize, clock: Arc<dyn Clock>) -> io::Result<Self> {
        stream.set_read_timeout(Some(WAIT))?;
        let shared = Arc::new(Shared::default());
        let (name, theirs) = (name.to_owned(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name(format!("socket-{name}")).spawn(move || {
            match receive(&stream, &theirs, limit_bytes, clock.as_ref()) {
                Ok(true) => {}
                Ok(false) => tracing::warn!(source = name, "the other side closed the connection: no more lines come"),
                Err(error) => tracing::warn!(source = name, %error, "the connection broke: no more lines come"),
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn lines(&self) -> MutexGuard<'_, Lines> {
        lock(&self.shared)
    }

    /// Tells the thread that there is room again.
    pub(super) fn wake(&self) {
        self.shared.room.notify_all();
    }

    /// Ends the thread.
    pub(super) fn stop(&mut self) {
        self.lines().ended = true;
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the receiving thread of a socket source panicked");
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Lines> {
    shared.lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads lines until the source stops (`true`) or the other side closes (`false`).
fn receive(mut stream: &TcpStream, shared: &Shared, limit_bytes: usize, clock: &dyn Clock) -> io::Result<bool> {
    let mut open = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = match stream.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if lock(shared).ended {
                    return Ok(true);
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            if !open.is_empty() {
                push(shared, &mut open, clock);
            }
            return Ok(lock(shared).ended);
        }
        for part in chunk[..read].split_inclusive(|byte| *byte == b'\n') {
            open.extend_from_slice(part);
            // A line that fills the whole buffer ends there: memory is bounded whatever comes.
            if part.ends_with(b"\n") || open.len() >= limit_bytes {
                push(shared, &mut open, clock);
                if !wait_for_room(shared, limit_bytes) {
                    return Ok(true);
                }
            }
        }
    }
}

/// Puts the open line into the buffer.
fn push(shared: &Shared, open: &mut Vec<u8>, clock: &dyn Clock) {
    let bytes = open.strip_suffix(b"\n").unwrap_or(open);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let line = Line { text: String::from_utf8_lossy(bytes).into_owned(), arrived_ms: clock.now_ms() };
    open.clear();
    let mut lines = lock(shared);
    lines.bytes += cost(&line);
    lines.kept.push_back(line);
}

/// Waits until the buffer is below its limit; `false` when the source stopped meanwhile.
fn wait_for_room(shared: &Shared, limit_bytes: usize) -> bool {
    let mut lines = lock(shared);
    while lines.bytes >= limit_bytes && !lines.ended {
        lines = shared.room.wait_timeout(lines, WAIT).unwrap_or_else(PoisonError::into_inner).0;
    }
    !lines.ended
}
