//! Messages that the server no longer has: named by their numbers, or counted.

use crate::{Input, drain, next, numbered, numbers, try_numbers};
use millstream_common::{Fault, Hint, ReadLimit, describe_chain};
use millstream_source::{Offset, Source};
use nats_tests::{Client, Nats};
use serde_json::json;

fn refusal(source: &mut dyn Source, start: Option<&Offset>) -> String {
    let limit = source.read_limit();
    describe_chain(&source.latest_offset(start, limit).unwrap_err())
}

fn lost(source: &mut dyn Source) -> Option<String> {
    source.metrics(None).get("offsetsLost").cloned()
}

/// Reads two messages, lets others come and go, and answers where the reading stands.
fn read_two(input: &Input, client: &Client, stream: &str) -> Offset {
    client.publish_numbers(stream, 1..=2);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(numbers(source.as_mut(), None, &first), [1, 2]);
    first
}

#[test]
fn messages_that_were_removed_before_they_were_read_are_named_or_counted() {
    let nats = Nats::shared();
    let client = nats.client();
    for (how, limit) in [("purge", "1000"), ("purge", "3"), ("limits", "1000")] {
        let stream = nats.stream(how);
        let mut input = Input::of(nats.servers(), &stream, &[("maxOffsetsPerTrigger", limit)]);
        let first = read_two(&input, &client, &stream);
        client.publish_numbers(&stream, 3..=20);
        match how {
            "purge" => client.purge(&stream, &json!({ "seq": 9 })),
            _ => client.change_stream(&stream, &json!({ "max_msgs": 12 })),
        }
        let mut source = input.open();
        let error = source.latest_offset(Some(&first), ReadLimit::AllAvailable).unwrap_err();
        let text = describe_chain(&error);
        let range =
            format!("6 messages of stream `{stream}` are gone, 3 to 8: they were removed before they were read");
        assert!(text.contains(&range), "{text}");
        assert_eq!(error.fault(), Fault::Data);
        assert!(error.hint().unwrap().contains("failOnDataLoss"), "{error}");

        input.set("failOnDataLoss", "false");
        let mut source = input.open();
        let (all, end) = drain(source.as_mut(), Some(&first));
        assert_eq!(all, numbered(9..=20));
        assert_eq!(lost(source.as_mut()).as_deref(), Some("6"), "each is counted once");
        input.set("failOnDataLoss", "true");
        client.publish_numbers(&stream, 21..=22);
        assert_eq!(drain(input.open().as_mut(), end.as_ref()).0, [21, 22], "the next range is whole again");
    }
}

#[test]
fn messages_that_are_removed_behind_the_query_are_no_loss() {
    let nats = Nats::shared();
    let stream = nats.stream("behind");
    let client = nats.client();
    let input = Input::of(nats.servers(), &stream, &[]);
    let first = read_two(&input, &client, &stream);
    client.publish_numbers(&stream, 3..=4);
    client.purge(&stream, &json!({ "seq": 3 }));
    let mut source = input.open();
    let (all, end) = drain(source.as_mut(), Some(&first));
    assert_eq!(all, [3, 4]);
    client.purge(&stream, &json!({}));
    assert_eq!(next(source.as_mut(), end.as_ref()), end);
    client.publish_numbers(&stream, 5..=6);
    assert_eq!(drain(source.as_mut(), end.as_ref()).0, [5, 6]);
    assert_eq!(lost(source.as_mut()), None);
}

#[test]
fn a_stream_that_was_emptied_before_it_was_read_is_told_of() {
    let nats = Nats::shared();
    let stream = nats.stream("emptied");
    let client = nats.client();
    let mut input = Input::of(nats.servers(), &stream, &[]);
    let first = read_two(&input, &client, &stream);
    client.publish_numbers(&stream, 3..=5);
    client.purge(&stream, &json!({}));
    let text = refusal(input.open().as_mut(), Some(&first));
    assert!(text.contains("3 messages") && text.contains("3 to 5"), "{text}");
    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    let (all, end) = drain(source.as_mut(), Some(&first));
    assert_eq!((all, lost(source.as_mut()).as_deref()), (vec![], Some("3")));
    client.publish_numbers(&stream, 6..=6);
    assert_eq!(drain(source.as_mut(), end.as_ref()).0, [6]);
}

#[test]
fn messages_that_vanish_from_a_range_that_is_in_the_log_are_missed() {
    let nats = Nats::shared();
    let client = nats.client();
    for is_filtered in [false, true] {
        let stream = nats.stream("logged");
        client.publish_numbers(&stream, 1..=6);
        let filter = format!("{stream}.>,{stream}");
        let options: &[(&str, &str)] = if is_filtered { &[("subject", &filter)] } else { &[] };
        let mut input = Input::of(nats.servers(), &stream, options);
        let end = next(input.open().as_mut(), None).unwrap();
        client.delete(&stream, 2);
        client.delete(&stream, 5);
        let mut source = input.open();
        let text = describe_chain(&try_numbers(source.as_mut(), None, &end).unwrap_err());
        assert!(text.contains(&format!("2 messages of stream `{stream}` are gone, 2, 5: they were removed")), "{text}");
        assert_eq!(text.contains("nobody knows"), is_filtered, "{text}");
        assert!(try_numbers(source.as_mut(), None, &end).is_err(), "asking again does not help");
        input.set("failOnDataLoss", "false");
        let mut source = input.open();
        assert_eq!(numbers(source.as_mut(), None, &end), [1, 3, 4, 6]);
        assert_eq!(lost(source.as_mut()).as_deref(), Some("2"));
        // What was read before it was deleted is no loss, and later ranges are whole.
        client.delete(&stream, 1);
        client.publish_numbers(&stream, 7..=8);
        input.set("failOnDataLoss", "true");
        assert_eq!(drain(input.open().as_mut(), Some(&end)).0, [7, 8]);
    }
}

#[test]
fn what_a_filter_would_have_taken_is_missed_when_it_goes_unseen() {
    let nats = Nats::shared();
    let stream = nats.stream("unseen");
    let client = nats.client();
    let input = Input::of(nats.servers(), &stream, &[("subject", &format!("{stream}.a"))]);
    let mut source = input.open();
    client.publish(&format!("{stream}.a"), "1");
    let (_, first) = drain(source.as_mut(), None);
    // Others come and go while it looks: it knows that they were nothing for it.
    client.publish_numbers(&format!("{stream}.b"), 2..=4);
    let second = next(source.as_mut(), first.as_ref());
    client.purge(&stream, &json!({ "filter": format!("{stream}.b") }));
    assert_eq!(drain(source.as_mut(), second.as_ref()).0, [0; 0]);
    let second = next(source.as_mut(), second.as_ref());
    client.publish(&format!("{stream}.a"), "5");
    let (all, third) = drain(source.as_mut(), second.as_ref());
    assert_eq!(all, [5]);
    // One of its own is removed before it looks, in the middle.
    client.publish(&format!("{stream}.b"), "6");
    client.publish(&format!("{stream}.a"), "7");
    client.publish(&format!("{stream}.b"), "8");
    client.delete(&stream, 7);
    let third = third.unwrap();
    let end = next(source.as_mut(), Some(&third)).unwrap();
    let text = describe_chain(&try_numbers(source.as_mut(), Some(&third), &end).unwrap_err());
    assert!(
        text.contains(&format!("message 7 of stream `{stream}` is gone")) && text.contains("which subjects"),
        "{text}"
    );
}

#[test]
fn a_stream_that_is_removed_and_made_again_is_read_from_its_start() {
    let nats = Nats::shared();
    let stream = nats.stream("again");
    let client = nats.client();
    let again = || {
        client.remove_stream(&stream);
        client.make_stream(&stream, &[&stream], &json!({}));
    };
    client.publish_numbers(&stream, 1..=5);
    let mut input = Input::of(nats.servers(), &stream, &[]);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(numbers(source.as_mut(), None, &first), numbered(1..=5));
    again();
    client.publish_numbers(&stream, 1..=9);
    let text = refusal(source.as_mut(), Some(&first));
    assert!(
        text.contains("after 5 are gone: the stream was removed, and another one of its name was made at"),
        "{text}"
    );

    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(numbers(source.as_mut(), Some(&first), &second), numbered(1..=9));
    assert_eq!(lost(source.as_mut()).as_deref(), Some("1"), "what nobody can count is one");
    drop(source);
    // Also when a crash comes in between.
    again();
    client.publish_numbers(&stream, 1..=3);
    let third = next(input.open().as_mut(), Some(&second)).unwrap();
    let mut source = input.open();
    assert_eq!(numbers(source.as_mut(), Some(&second), &third), numbered(1..=3));
    // When it happens between planning and reading, no row of the one is taken for one of the other.
    client.publish_numbers(&stream, 4..=6);
    let fourth = next(source.as_mut(), Some(&third)).unwrap();
    again();
    client.publish_numbers(&stream, 1..=10);
    assert_eq!(numbers(source.as_mut(), Some(&third), &fourth), [0; 0]);
    assert_eq!(lost(source.as_mut()).as_deref(), Some("4"), "one of unknown size, and three");
    input.set("failOnDataLoss", "true");
    let text = describe_chain(&try_numbers(input.open().as_mut(), Some(&third), &fourth).unwrap_err());
    assert!(text.contains("3 messages") && text.contains("4 to 6: the stream was removed after this range"), "{text}");
}

#[test]
fn a_stream_that_is_gone_is_told_of_and_waited_for() {
    let nats = Nats::shared();
    let stream = nats.stream("gone");
    let client = nats.client();
    let mut input = Input::of(nats.servers(), &stream, &[]);
    let first = read_two(&input, &client, &stream);
    client.remove_stream(&stream);
    let text = refusal(input.open().as_mut(), Some(&first));
    assert!(text.contains("after 2 are gone: there is no such stream any more"), "{text}");
    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(numbers(source.as_mut(), Some(&first), &second), [0; 0]);
    assert_eq!(next(source.as_mut(), Some(&second)), Some(second.clone()), "nothing is new as long as it is gone");
    client.make_stream(&stream, &[&stream], &json!({}));
    client.publish_numbers(&stream, 1..=2);
    let (all, third) = drain(source.as_mut(), Some(&second));
    assert_eq!(all, [1, 2]);
    assert_eq!(next(source.as_mut(), third.as_ref()), third);
}

#[test]
fn a_server_that_comes_back_without_its_newest_messages_is_noticed() {
    let Some(nats) = Nats::own("") else { return };
    let client = nats.client();
    client.make_stream("S", &["s"], &json!({}));
    let mut input = Input::of(nats.servers(), "S", &[]);
    let first = read_two(&input, &client, "s");
    drop(client);
    nats.kill();
    let (store, copy) = (nats.folder().join("jetstream"), nats.folder().join("copy"));
    let run = |program: &str, from: &std::path::Path, to: &std::path::Path| {
        assert!(std::process::Command::new(program).arg("-a").arg(from).arg(to).status().unwrap().success());
    };
    run("cp", &store, &copy);
    nats.restart();
    nats.client().publish_numbers("s", 3..=5);
    let (all, second) = drain(input.open().as_mut(), Some(&first));
    assert_eq!(all, [3, 4, 5]);
    nats.kill();
    std::fs::remove_dir_all(&store).unwrap();
    run("cp", &copy, &store);
    nats.restart();
    let text = refusal(input.open().as_mut(), second.as_ref());
    assert!(text.contains("after 2 are gone: it ends at 2 now: the server went back"), "{text}");
    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    let (all, third) = drain(source.as_mut(), second.as_ref());
    assert_eq!((all, lost(source.as_mut()).as_deref()), (vec![], Some("1")));
    nats.client().publish_numbers("s", 3..=4);
    assert_eq!(drain(source.as_mut(), third.as_ref()).0, [3, 4], "they are others than those that were read");
}

#[test]
fn what_is_read_and_what_is_lost_is_all_that_was_ever_added() {
    const ADDED: u32 = 4000;
    let nats = Nats::shared();
    for limit in ["50", "100000"] {
        let stream = nats.stream("race");
        let input = Input::of(nats.servers(), &stream, &[("maxOffsetsPerTrigger", limit), ("failOnDataLoss", "false")]);
        let mut source = input.open();
        let (mut end, mut read): (Option<Offset>, Vec<i64>) = (None, Vec::new());
        let mut turn = |source: &mut dyn Source| {
            let Some(next) = next(source, end.as_ref()).filter(|next| Some(next) != end.as_ref()) else { return false };
            read.extend(numbers(source, end.as_ref(), &next));
            end = Some(next);
            true
        };
        assert!(!turn(source.as_mut()), "it begins before the first message");
        std::thread::scope(|scope| {
            // It is purged and deleted from while it is read.
            let writer = scope.spawn(|| {
                let client = nats.client();
                for number in (1..=ADDED).step_by(20) {
                    client.publish_numbers(&stream, number..=number + 19);
                    client.delete(&stream, u64::from(number) + 7);
                    if number % 400 == 1 && number > 300 {
                        client.purge(&stream, &json!({ "seq": number - 200 }));
                    }
                }
            });
            while !writer.is_finished() {
                turn(source.as_mut());
            }
            writer.join().unwrap();
        });
        while turn(source.as_mut()) {}
        let lost: usize = lost(source.as_mut()).map_or(0, |lost| lost.parse().unwrap());
        let mut once = read.clone();
        once.dedup();
        assert_eq!(once, read, "no message comes twice");
        assert_eq!(read.len() + lost, ADDED as usize, "limit {limit}: {} read, {lost} lost", read.len());
    }
}
