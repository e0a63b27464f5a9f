//! Entries that the server no longer has: named with their range, or counted.

use crate::{Input, ids, next, numbered, try_ids};
use millstream_common::{Fault, Hint, ReadLimit, describe_chain};
use millstream_source::{Offset, Source};
use redis_tests::Redis;

fn refusal(source: &mut dyn Source, start: Option<&Offset>) -> String {
    let limit = source.read_limit();
    describe_chain(&source.latest_offset(start, limit).unwrap_err())
}

fn lost(source: &mut dyn Source) -> Option<String> {
    source.metrics(None).get("entriesLost").cloned()
}

#[test]
fn entries_that_were_trimmed_before_they_were_read_are_named_or_counted() {
    let redis = Redis::shared();
    for limit in ["1000", "3"] {
        let stream = redis.name("trimmed");
        let mut client = redis.client();
        client.add_entries(&stream, 1..=2);
        let mut input = Input::of(redis.url(), &stream, &[("maxEntriesPerTrigger", limit)]);
        let mut source = input.open();
        let first = next(source.as_mut(), None).unwrap();
        assert_eq!(ids(source.as_mut(), None, &first), numbered(1..=2));
        drop(source);
        client.add_entries(&stream, 3..=20);
        client.ask(&format!("XTRIM {stream} MAXLEN 12"));

        let mut source = input.open();
        let limit = source.read_limit();
        let error = source.latest_offset(Some(&first), limit).unwrap_err();
        let text = describe_chain(&error);
        let range =
            format!("6 entries of stream `{stream}` between 2-0 and 9-0 are gone: the stream begins at 9-0 now");
        assert!(text.contains(&range), "{text}");
        assert_eq!(error.fault(), Fault::Data);
        assert!(error.hint().unwrap().contains("failOnDataLoss"), "{error}");

        input.set("failOnDataLoss", "false");
        let mut source = input.open();
        let (mut end, mut all) = (first.clone(), Vec::new());
        while let Some(next) = next(source.as_mut(), Some(&end)).filter(|next| *next != end) {
            all.extend(ids(source.as_mut(), Some(&end), &next));
            end = next;
        }
        assert_eq!(all, numbered(9..=20));
        assert_eq!(lost(source.as_mut()).as_deref(), Some("6"), "each is counted once");
        input.set("failOnDataLoss", "true");
        client.add_entries(&stream, 21..=22);
        let mut source = input.open();
        let last = next(source.as_mut(), Some(&end)).unwrap();
        assert!(!ids(source.as_mut(), Some(&end), &last).is_empty(), "the next range is whole again");
    }
}

#[test]
fn entries_that_are_trimmed_behind_the_query_are_no_loss() {
    let redis = Redis::shared();
    let stream = redis.name("behind");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=10);
    let input = Input::of(redis.url(), &stream, &[("maxEntriesPerTrigger", "6")]);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    ids(source.as_mut(), None, &first);
    client.ask(&format!("XTRIM {stream} MAXLEN 4"));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&first), &second), numbered(7..=10));
    client.ask(&format!("XTRIM {stream} MAXLEN 0"));
    assert_eq!(next(source.as_mut(), Some(&second)), Some(second.clone()));
    client.add_entries(&stream, 11..=12);
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&second), &third), numbered(11..=12));
    assert_eq!(lost(source.as_mut()), None);
}

#[test]
fn entries_that_vanish_from_a_range_that_is_in_the_log_are_missed() {
    let redis = Redis::shared();
    let stream = redis.name("logged");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=6);
    let mut input = Input::of(redis.url(), &stream, &[]);
    let end = next(input.open().as_mut(), None).unwrap();
    client.ask(&format!("XDEL {stream} 2-0 5-0"));
    let mut source = input.open();
    let error = try_ids(source.as_mut(), None, &end).unwrap_err();
    let text = describe_chain(&error);
    assert!(
        text.contains(&format!("2 entries of stream `{stream}` between 0-0 and 6-0 are gone: 6 were added, and 4")),
        "{text}"
    );
    assert!(try_ids(source.as_mut(), None, &end).is_err(), "asking again does not help");
    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    assert_eq!(ids(source.as_mut(), None, &end), ["1-0", "3-0", "4-0", "6-0"]);
    assert_eq!(lost(source.as_mut()).as_deref(), Some("2"));
    // What was read before it was deleted is no loss, and later ranges are whole.
    client.ask(&format!("XDEL {stream} 1-0 6-0"));
    client.add_entries(&stream, 7..=8);
    input.set("failOnDataLoss", "true");
    let mut source = input.open();
    let last = next(source.as_mut(), Some(&end)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&end), &last), numbered(7..=8));
}

#[test]
fn a_stream_that_is_removed_and_made_again_is_read_from_its_start() {
    let redis = Redis::shared();
    let stream = redis.name("again");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=5);
    let mut input = Input::of(redis.url(), &stream, &[]);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    ids(source.as_mut(), None, &first);
    client.ask(&format!("DEL {stream}"));
    client.add_entries(&stream, 1..=3);
    let text = refusal(source.as_mut(), Some(&first));
    assert!(text.contains("after 5-0 are gone: it is another stream of this name now, which ends at 3-0"), "{text}");

    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&first), &second), numbered(1..=3));
    assert_eq!(lost(source.as_mut()).as_deref(), Some("1"), "what nobody can count is one");
    drop(source);
    // Also when a crash comes in between; greater ids tell nothing.
    client.ask(&format!("DEL {stream}"));
    client.add_entries(&stream, 10..=14);
    let third = next(input.open().as_mut(), Some(&second)).unwrap();
    let mut source = input.open();
    assert_eq!(ids(source.as_mut(), Some(&second), &third), numbered(10..=14));
    client.add_entries(&stream, 15..=15);
    let fourth = next(source.as_mut(), Some(&third)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&third), &fourth), ["15-0"]);
}

#[test]
fn a_stream_that_is_gone_is_told_of_and_waited_for() {
    let redis = Redis::shared();
    let stream = redis.name("gone");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=5);
    let mut input = Input::of(redis.url(), &stream, &[]);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    client.ask(&format!("DEL {stream}"));
    let text = refusal(source.as_mut(), Some(&first));
    assert!(text.contains("after 5-0 are gone: there is no such stream any more"), "{text}");
    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&first), &second), [""; 0]);
    assert_eq!(next(source.as_mut(), Some(&second)), Some(second.clone()), "nothing is new as long as it is gone");
    client.add_entries(&stream, 1..=2);
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&second), &third), numbered(1..=2));
    let latest = source.latest_offset(Some(&third), ReadLimit::AllAvailable).unwrap();
    assert_eq!(latest, Some(third));
}

#[test]
fn what_is_read_and_what_is_lost_is_all_that_was_ever_added() {
    const ADDED: u32 = 6000;
    let redis = Redis::shared();
    for limit in ["50", "100000"] {
        let stream = redis.name("race");
        let mut input = Input::of(redis.url(), &stream, &[("maxEntriesPerTrigger", limit)]);
        input.set("failOnDataLoss", "false");
        let mut source = input.open();
        let (mut end, mut read): (Option<Offset>, Vec<String>) = (None, Vec::new());
        let mut turn = |source: &mut dyn Source| {
            let Some(next) = next(source, end.as_ref()).filter(|next| Some(next) != end.as_ref()) else { return false };
            read.extend(ids(source, end.as_ref(), &next));
            end = Some(next);
            true
        };
        assert!(!turn(source.as_mut()), "it begins before the first entry");
        std::thread::scope(|scope| {
            // It is trimmed and deleted from while it is read.
            let writer = scope.spawn(|| {
                let mut client = redis.client();
                for number in (1..=ADDED).step_by(20) {
                    client.ask("MULTI");
                    client.add_entries(&stream, number..=number + 19);
                    client.ask(&format!("XDEL {stream} {}-0 {}-0", number + 7, number.saturating_sub(30)));
                    client.ask("EXEC");
                    if number.is_multiple_of(3) {
                        client.ask(&format!("XTRIM {stream} MAXLEN 200"));
                    }
                }
            });
            while !writer.is_finished() {
                turn(source.as_mut());
            }
        });
        while turn(source.as_mut()) {}
        let lost: u32 = lost(source.as_mut()).map_or(0, |lost| lost.parse().unwrap());
        let mut once = read.clone();
        once.dedup();
        assert_eq!(once, read, "no entry comes twice");
        assert_eq!(read.len() as u32 + lost, ADDED, "limit {limit}: {} read, {lost} lost", read.len());
        assert!(lost >= ADDED / 20, "what is deleted at once is never read");
    }
}
