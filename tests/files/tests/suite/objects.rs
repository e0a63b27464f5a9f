use crate::world::World;
use bytes::Bytes;
use files_tests::server::Server;
use millstream_checkpoint::{LEASE_MS, contract};
use millstream_common::{Clock, ManualClock, StopSignal, describe_chain};
use millstream_runtime::{QueryRun, Session};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FILES: u64 = 12;
const PATIENCE: Duration = Duration::from_secs(60);

fn query(server: &Server, sink: &str) -> String {
    format!(
        r#"
        name = "counts"
        sql = "SELECT k, count(*) AS n FROM events GROUP BY k"
        output_mode = "update"
        trigger = "available now"
        checkpoint = "{}"

        [[source]]
        name = "events"
        format = "json"
        schema = "k STRING"
        options = {{ path = "{}", maxFilesPerTrigger = 1 }}

        [sink]
        {sink}
        "#,
        server.location("checkpoint"),
        server.location("in"),
    )
}

/// Each file has one row of each of three keys.
fn fill(server: &Server) {
    let input = server.files("in").unwrap();
    for number in 0..FILES {
        let lines = "{\"k\":\"a\"}\n{\"k\":\"b\"}\n{\"k\":\"c\"}\n";
        input.put_new(&format!("{number:03}.json"), Bytes::from_static(lines.as_bytes())).unwrap();
    }
}

fn spawn(world: &World) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_files-child"));
    command.arg(world.path("query.toml")).arg(world.path("host.toml"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn commits(server: &Server) -> usize {
    server.files("checkpoint").unwrap().list("commits").unwrap().len()
}

#[test]
fn durable_files_on_s3_keep_the_contract() {
    let server = Server::start().unwrap();
    contract::durable_files(&server.files("contract").unwrap());
    contract::one_of_many_wins(&server.files("race").unwrap());
}

#[test]
fn source_and_checkpoint_on_s3_survive_being_killed() {
    let server = Server::start().unwrap();
    fill(&server);
    let sql = "SELECT k FROM events WHERE k <> 'b'";
    let text = query(&server, "format = \"json\"\n        options = { path = \"out\" }");
    let text = text.replace("SELECT k, count(*) AS n FROM events GROUP BY k", sql).replace("\"update\"", "\"append\"");
    let world = World::new(&text, &server.host_file());
    for kill in 1..=3 {
        let mut child = spawn(&world);
        let began = Instant::now();
        while commits(&server) < kill * 2 && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "the query does not get on");
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The lease of a process that was killed ends by itself; a person who knows that it is dead takes it away.
        server.files("checkpoint").unwrap().delete("lease").unwrap();
    }
    let output = spawn(&world).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(commits(&server), FILES as usize);
    let rows = world.rows("out");
    assert_eq!(rows.len() as u64, 2 * FILES, "nothing is lost and nothing is there twice");
    assert_eq!(rows.iter().filter(|row| *row == "{\"k\":\"a\"}").count() as u64, FILES);
}

#[test]
fn a_second_writer_of_a_checkpoint_on_s3_is_kept_out_and_a_dead_ones_place_is_taken() {
    let server = Server::start().unwrap();
    fill(&server);
    let world = World::new(&query(&server, "format = \"noop\""), &server.host_file());
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let session = Session::builder().clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let mut first = QueryRun::open(&session, world.load().spec, StopSignal::new()).unwrap();
    first.run_next().unwrap().unwrap();
    let Err(error) = QueryRun::open(&session, world.load().spec, StopSignal::new()) else {
        panic!("two queries write one checkpoint")
    };
    let text = error.to_string();
    assert!(text.contains("in use by") && text.contains(&server.location("checkpoint")), "{text}");

    // The first is taken for dead. What it does then is not done.
    clock.advance(Duration::from_millis(LEASE_MS as u64 + 1));
    let mut second = QueryRun::open(&session, world.load().spec, StopSignal::new()).unwrap();
    let progress = second.run_next().unwrap().unwrap();
    assert_eq!(progress.batch_id, 1);
    assert!(first.run_next().is_err(), "the first is fenced off");
    let mut batches = 2;
    while second.run_next().unwrap().is_some() {
        batches += 1;
    }
    assert_eq!(batches, FILES);
}

#[test]
fn a_file_sink_on_s3_is_read_back() {
    let server = Server::start().unwrap();
    fill(&server);
    let sink = format!("format = \"json\"\n        options = {{ path = \"{}\" }}", server.location("out"));
    let text = query(&server, &sink).replace("SELECT k, count(*) AS n FROM events GROUP BY k", "SELECT k FROM events");
    let world = World::new(&text.replace("\"update\"", "\"append\""), &server.host_file());
    let output = spawn(&world).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = server.files("out").unwrap();
    let committed = millstream_sink::connectors::file::read_committed_in(files.as_ref()).unwrap();
    assert_eq!(committed.iter().map(|batch| batch.rows).sum::<u64>(), 3 * FILES);
}

#[test]
fn many_objects_are_listed_page_by_page() {
    let server = Server::start().unwrap();
    let input = server.files("in").unwrap();
    let content = Bytes::from_static(b"{\"k\":\"a\"}\n");
    std::thread::scope(|scope| {
        for part in 0..8 {
            let (input, content) = (&input, &content);
            scope.spawn(move || {
                for number in (0..1_200).filter(|number| number % 8 == part) {
                    input.put_new(&format!("{number:05}.json"), content.clone()).unwrap();
                }
            });
        }
    });
    let text = query(&server, "format = \"noop\"").replace("maxFilesPerTrigger = 1", "maxFilesPerTrigger = 700");
    let world = World::new(&text, &server.host_file());
    let session = Session::new().unwrap();
    let mut run = QueryRun::open(&session, world.load().spec, StopSignal::new()).unwrap();
    let rows: Vec<u64> =
        std::iter::from_fn(|| run.run_next().unwrap()).map(|progress| progress.num_input_rows).collect();
    assert_eq!(rows, [700, 500]);
}

#[test]
fn wrong_credentials_are_told_without_the_secret() {
    let server = Server::start().unwrap();
    fill(&server);
    let host = server.host_file().replace("only-for-tests", "a-wrong-secret");
    let world =
        World::new(&query(&server, "format = \"noop\"").replace(&server.location("checkpoint"), "checkpoint"), &host);
    let session = Session::new().unwrap();
    let Err(error) = QueryRun::open(&session, world.load().spec, StopSignal::new()) else {
        panic!("a wrong secret opens the bucket")
    };
    let text = describe_chain(&error);
    assert!(text.contains("s3://bucket/in") && !text.contains("a-wrong-secret"), "{text}");
}
