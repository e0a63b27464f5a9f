//! Ctrl-C, once and twice.

use crate::console::{COUNTS, Console};

#[test]
fn the_first_interrupt_ends_after_the_running_batch_and_the_checkpoint_is_whole() {
    for signal in ["INT", "TERM"] {
        let console = Console::with(COUNTS);
        let mut running = console.start(&["run", "query.toml"]);
        running.wait_for_batches(3);
        running.signal(signal);
        let ended = running.end().expect(0, &["stopping after batch ", "; again to stop at once", "stopped "]);
        assert_eq!(ended.stdout, "");
        let count = |folder| console.names(folder).len();
        assert_eq!(count("checkpoint/offsets"), count("checkpoint/commits"), "no batch is left half done");
        console.run(&["checkpoint", "verify", "checkpoint"]).expect(0, &[]).prints(&["all whole"]);
        console.run(&["checkpoint", "show", "checkpoint"]).expect(0, &[]).prints(&["given back by run"]);
        assert!(console.names("run").is_empty(), "the control socket is gone");
    }
}

#[test]
fn the_second_interrupt_ends_at_once_and_the_batch_runs_again() {
    // One batch that takes many seconds: a million rows, each hashed twenty times over.
    let hash = (0..20).fold("CAST(value AS STRING)".to_owned(), |inner, _| format!("md5({inner})"));
    let query = COUNTS.replace("SELECT value % 3", &format!("SELECT max({hash}) AS hash, value % 3"));
    let console = Console::with(&query.replace("= 10 }", "= 1000000 }"));
    let mut running = console.start(&["run", "query.toml"]);
    running.wait_until("the first batch", || console.path("checkpoint/offsets/0").exists());
    running.signal("INT");
    running.wait_until("the first answer", || console.read("stderr.txt").contains("stopping after batch 0"));
    running.signal("INT");
    running.end().expect(130, &["again to stop at once"]);
    console.run(&["check", "query.toml"]).expect(0, &[]).prints(&["batch 0 is defined and not done: it runs again"]);
}
