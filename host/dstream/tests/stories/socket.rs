//! Lines over a real socket.

use crate::harness::{World, alone, counts, locked, pair, seconds, sorted};
use millstream_common::DurableFiles;
use millstream_dstream::StreamingContext;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn words_over_a_socket_are_counted() {
    let _alone = alone();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let context = StreamingContext::new(Duration::from_millis(50)).unwrap();
    let lines = context.socket_text_stream("127.0.0.1", port).unwrap();
    let words = lines.flat_map(|line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let seen = sorted(&words.map(pair).reduce_by_key(|a, b| a + b));
    context.start().unwrap();
    let (mut connection, _) = server.accept().unwrap();
    connection.write_all(b"hello world\nhello\n").unwrap();
    let sum = || locked(&seen).iter().flat_map(|(_, rows)| rows).map(|(_, count)| count).sum::<i64>();
    let until = Instant::now() + seconds(30);
    while sum() < 3 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    context.stop(true);
    context.await_termination().unwrap();
    let mut all: Vec<(String, i64)> = locked(&seen).iter().flat_map(|(_, rows)| rows.clone()).collect();
    all.sort();
    let (hello, world): (Vec<_>, Vec<_>) = all.into_iter().partition(|(word, _)| word == "hello");
    assert_eq!(hello.iter().map(|(_, count)| count).sum::<i64>(), 2);
    assert_eq!(world, counts(&[("world", 1)]));
}

#[test]
fn lines_of_a_batch_that_a_crash_cut_short_are_there_again() {
    let _alone = alone();
    let world = World::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let start = |fails: bool| {
        let context = StreamingContext::with_clock(seconds(1), Arc::clone(&world.clock) as _).unwrap();
        context.checkpoint_in(Arc::clone(&world.files) as _).unwrap();
        let context = context.resuming().unwrap();
        let lines = context.socket_text_stream("127.0.0.1", port).unwrap();
        let seen = sorted(
            &lines.map(pair).update_state_by_key(|new, old: Option<i64>| Some(new.len() as i64 + old.unwrap_or(0))),
        );
        let seen_lines = sorted(&lines);
        lines
            .foreach_rdd(move |rows, _| if fails && !rows.is_empty()? { Err("it fails".into()) } else { Ok(()) })
            .unwrap();
        (context.start_stepwise().unwrap(), seen, seen_lines)
    };
    let (stepper, _, seen_lines) = start(true);
    let (mut connection, _) = server.accept().unwrap();
    connection.write_all(b"a\n").unwrap();
    // The line comes by a thread of its own: batches go on until one has it.
    let until = Instant::now() + seconds(30);
    loop {
        world.tick();
        if stepper.run_due().is_err() {
            break;
        }
        assert!(Instant::now() < until, "the line does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
    let at = locked(&seen_lines).last().unwrap().0;
    assert_eq!(locked(&seen_lines).last().unwrap().1, ["a".to_owned()]);
    drop((stepper, connection));
    let (stepper, seen, seen_lines) = start(false);
    let (_connection, _) = server.accept().unwrap();
    stepper.run_due().unwrap();
    assert_eq!(locked(&seen_lines)[0], (at, vec!["a".to_owned()]));
    assert_eq!(locked(&seen)[0], (at, counts(&[("a", 1)])));
    drop(stepper);
    let left = world.files.list("sources/socket").unwrap();
    assert!(left.is_empty(), "{left:?}");
}
