//! A crash at every durable write of a windowed count into the file sink, enumerated.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use streaming_stories::{SinkKind, Variant, crash_everywhere, parse, play};

const STORY: &str = "# Goal: a windowed count into files comes out the same through any crash.
source events (at timestamp, k string) watermark at delay 5 seconds
query SELECT window(at, '10 seconds').start AS start, k, count(*) AS n
  FROM events GROUP BY window(at, '10 seconds'), k
mode append

add events 00:00:01,a; 00:00:02,b; 00:00:12,a
batch
----

no-data batch
----

add events 00:00:03,a; 00:00:16,c; 00:00:17,a
batch
----

no-data batch
----

add events 00:00:04,late; 00:00:33,b
batch
----

no-data batch
----

add events 00:00:50,z
batch
----

no-data batch
----

";

#[test]
fn a_crash_at_any_durable_write_leaves_the_manifests_as_without_it() {
    let story = parse("windowed_count", STORY).unwrap();
    let files = Variant { sink: SinkKind::File, no_snapshots: true, ..Variant::default() };
    let whole = play(&story, files).unwrap_or_else(|error| panic!("{error:#}"));
    let of = |part: &str| whole.writes.iter().filter(|write| write.contains(part)).count();
    assert_eq!(whole.batches.len(), 8);
    assert_eq!(of("output/_millstream/") - 1, 8, "a manifest per batch, and the owner: {:#?}", whole.writes);
    assert_eq!(of("checkpoint/offsets/"), 8);
    assert_eq!(of("checkpoint/commits/"), 8);
    assert!(of("output/part-") >= 3 && of("checkpoint/state/") >= 8, "{:#?}", whole.writes);
    let rows: Vec<&String> = whole.batches.values().flatten().collect();
    assert_eq!(rows.len(), 5, "{rows:?}");
    for partitions in [1, 3] {
        let variant = Variant { partitions: Some(partitions), ..files };
        let crashes = crash_everywhere(&story, variant).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(crashes >= 70, "{crashes}");
    }
}
