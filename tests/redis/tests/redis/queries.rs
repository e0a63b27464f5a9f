//! Query files from Redis to Redis: the file, what goes in, and what must come out.

use databases_tests::QueryFile;
use millstream_common::StopSignal;
use millstream_runtime::Session;
use millstream_runtime::batch_query::run_batch_query;
use redis_tests::Redis;

/// The query of a file, where `NAME` stands for a name of this test and `URL` for the server.
fn query_file(query: &str, name: &str) -> QueryFile {
    QueryFile::new(&query.replace("NAME", name).replace("URL", Redis::shared().url()))
}

const VISITS: &str = r#"
name = "visits"
output_mode = "update"
trigger = "available now"
checkpoint = "checkpoint"
sql = """
SELECT fields['page'] AS page, count(*) AS visits, count(fields['user']) AS known, max(timestamp) AS newest
FROM clicks GROUP BY fields['page']
"""

[[source]]
name = "clicks"
format = "redis"
options = { url = "URL", stream = "NAME-clicks", startingOffsets = "earliest", maxEntriesPerTrigger = 2 }

[sink]
format = "redis"
options = { url = "URL", key = "page", keyPrefix = "NAME:visits:" }
"#;

#[test]
fn visits_are_counted_from_a_stream_into_hashes_with_and_without_restarts() {
    let redis = Redis::shared();
    let mut client = redis.client();
    for restarting in [false, true] {
        let name = redis.name("visits");
        for (id, fields) in [
            ("1000-0", "page home user ann"),
            ("2000-0", "page home"),
            ("3000-0", "user bob page cart"),
            ("3000-1", "page home user bob extra 1"),
            ("4000-0", "page cart user bob"),
        ] {
            client.ask(&format!("XADD {name}-clicks {id} {fields}"));
        }
        let told = query_file(VISITS, &name).run(restarting);
        assert_eq!(told.iter().map(|progress| progress.num_input_rows).collect::<Vec<_>>(), [2, 2, 1]);
        let source = &told[0].sources[0];
        assert!(source.description.contains(&format!("RedisStreams[{name}-clicks at redis://")), "{source:?}");
        assert_eq!(source.metrics.get("entriesBehindLatest").map(String::as_str), Some("3"));
        assert_eq!(
            client.keys(&format!("{name}:visits:*")),
            ["cart", "home"].map(|key| format!("{name}:visits:{key}"))
        );
        let home = client.hash(&format!("{name}:visits:home"));
        assert_eq!(home, "known=2 newest=1970-01-01 00:00:03 page=home visits=3", "restarting: {restarting}");
        let cart = client.hash(&format!("{name}:visits:cart"));
        assert_eq!(cart, "known=2 newest=1970-01-01 00:00:04 page=cart visits=2", "restarting: {restarting}");
    }
}

const WINDOWS: &str = r#"
name = "windows"
output_mode = "append"
trigger = "available now"
checkpoint = "checkpoint"
sql = """
SELECT CAST(w.start AS STRING) AS at, sensor, hot FROM (
  SELECT window(timestamp, '10 seconds') AS w, fields['sensor'] AS sensor, max(CAST(fields['heat'] AS INT)) AS hot
  FROM readings GROUP BY window(timestamp, '10 seconds'), fields['sensor']) AS heats
"""

[[source]]
name = "readings"
format = "redis"
options = { url = "URL", stream = "NAME-a, NAME-b", startingOffsets = "earliest" }
watermark = { column = "timestamp", delay = "5 seconds" }

[sink]
format = "redis"
options = { url = "URL", stream = "NAME-hot", maxLength = "~1000" }
"#;

#[test]
fn windows_over_the_times_of_ids_go_from_two_streams_into_a_third() {
    let redis = Redis::shared();
    let mut client = redis.client();
    let name = redis.name("windows");
    let folder = query_file(WINDOWS, &name);
    for (stream, id, fields) in [
        ("a", "1000-0", "sensor one heat 10"),
        ("b", "2000-0", "sensor two heat 7"),
        ("a", "9000-0", "sensor one heat 30"),
        ("b", "12000-0", "sensor two heat 8"),
    ] {
        client.ask(&format!("XADD {name}-{stream} {id} {fields}"));
    }
    folder.run(false);
    assert_eq!(client.entries(&format!("{name}-hot")), [""; 0], "no window is closed yet");
    client.ask(&format!("XADD {name}-a 40000-0 sensor one heat 1"));
    client.ask(&format!("XADD {name}-b 3-0 sensor late heat 99"));
    folder.run(true);
    let mut hot = client.entries(&format!("{name}-hot"));
    hot.sort();
    assert_eq!(
        hot,
        [
            "at 1970-01-01 00:00:00 sensor one hot 30",
            "at 1970-01-01 00:00:00 sensor two hot 7",
            "at 1970-01-01 00:00:10 sensor two hot 8",
        ]
    );
}

#[test]
fn a_batch_query_reads_streams_from_beginning_to_end_once() {
    let redis = Redis::shared();
    let mut client = redis.client();
    let name = redis.name("batch");
    for number in 0..5 {
        client.ask(&format!("XADD {name}-clicks {}-0 page home n {number}", number + 1));
    }
    let folder = query_file(&VISITS.replace("output_mode = \"update\"", "output_mode = \"complete\""), &name);
    let session = Session::new().unwrap();
    let summary = run_batch_query(&session, &folder.spec(), &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("clicks".to_owned(), 5)], 1));
    let home = client.hash(&format!("{name}:visits:home"));
    assert_eq!(home, "known=0 newest=1970-01-01 00:00:00.005 page=home visits=5");
}
