//! The thread that ticks for a host's deadlines lives as long as the host. Alone in its process: it counts threads.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail a test")]

use millstream_wasm::PluginHost;
use std::time::{Duration, Instant};

fn ticking() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.map(name).filter(|name| name.starts_with("millstream-dead")).count()
}

fn becomes(wanted: usize) -> bool {
    let start = Instant::now();
    while ticking() != wanted && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    ticking() == wanted
}

#[test]
fn the_ticking_thread_ends_with_its_host() {
    assert!(becomes(0));
    let first = PluginHost::new().unwrap();
    let second = PluginHost::new().unwrap();
    // Who runs no plugin is not woken.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(ticking(), 0);
    // What is in the bytes is looked at under a deadline.
    assert!(first.load("none", b"no component").is_err());
    assert!(second.load("none", b"no component").is_err());
    // A thread takes its name when it begins to run, which may be later.
    assert!(becomes(2));
    drop(first);
    assert!(becomes(1));
    drop(second);
    assert!(becomes(0));
}
