//! A query that is to stop while its server does not answer.

use crate::sink::options;
use crate::{server, server_to_kill, stories};
use databases_tests::proxy::{Proxy, port_of, through};
use databases_tests::query::Story;
use databases_tests::{Product, rows};
use millstream_runtime::{OutputMode, StreamingQuery};
use std::time::{Duration, Instant};

stories! {
    a_query_whose_server_is_away_ends_at_once_when_it_is_to_stop
    a_query_whose_server_is_silent_ends_soon_when_it_is_to_stop
}

/// Starts a query, lets `harm` happen before its second batch, stops it while it waits; answers how long that took.
fn stopped(story: &mut Story, harm: impl FnOnce()) -> Duration {
    story.add(&[("a", 0)]);
    let spec = story.spec().clone();
    let query = StreamingQuery::start(&story.world.session, spec, None).unwrap();
    let begin = Instant::now();
    while query.last_progress().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the first batch does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
    harm();
    story.add(&[("b", 1)]);
    std::thread::sleep(Duration::from_millis(700));
    let asked = Instant::now();
    query.ask_to_stop();
    assert!(query.await_termination_for(Duration::from_secs(20)).unwrap(), "it does not stop");
    assert!(query.exception().is_none());
    asked.elapsed()
}

fn a_query_whose_server_is_away_ends_at_once_when_it_is_to_stop(product: Product) {
    let Some(server) = server_to_kill(product) else { return };
    let url = server.database();
    let options = options(&url, "t");
    let mut story = Story::new("SELECT k, v FROM events", OutputMode::Append, server.format(), &options);
    let took = stopped(&mut story, || server.kill());
    server.restart();
    assert!(took < Duration::from_secs(1), "{took:?}");
    story.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM t ORDER BY k"), ["a|0", "b|1"], "the next start runs the batch again");
}

fn a_query_whose_server_is_silent_ends_soon_when_it_is_to_stop(product: Product) {
    let server = server(product);
    let url = server.database();
    let proxy = Proxy::start(port_of(&url));
    let options = options(&through(&url, &proxy), "t");
    let mut story = Story::new("SELECT k, v FROM events", OutputMode::Append, server.format(), &options);
    // A statement may be about to end, so it gets a little time.
    let took = stopped(&mut story, || proxy.hold());
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(rows(&url, "SELECT * FROM t"), ["a|0"]);
}
