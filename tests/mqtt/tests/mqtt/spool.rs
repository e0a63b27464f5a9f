//! What the source keeps in the checkpoint, and how much.

use crate::{Input, next, numbered, until, values};
use millstream_common::DurableFiles;
use millstream_source::connectors::mqtt::MqttSourceFactory;
use millstream_source::{Offset, SourceFactory, SourceSettings};
use mqtt_tests::Broker;
use std::time::Duration;

#[test]
fn a_full_spool_holds_the_broker_back_until_batches_have_taken_it() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("full"), broker.client());
    let options =
        [("spoolBytes", "20000"), ("maxInflight", "10"), ("maxEntriesPerTrigger", "30"), ("keepAlive", "1 s")];
    let input = Input::of(broker.url(), &topic, &options);
    let mut source = input.begin();
    for number in 1..=200 {
        client.publish(&topic, &number.to_string(), 1);
    }
    // Longer than the connection may be silent.
    std::thread::sleep(Duration::from_secs(3));
    let kept = source.newest_offset().unwrap().0.as_u64().unwrap();
    assert!((10..100).contains(&kept), "{kept} messages are kept, with about 2000 bytes for 10 of them");
    let (mut end, mut all) = (None, Vec::new());
    while all.len() < 200 {
        let Some(to) = next(source.as_mut(), end.as_ref()).filter(|to| Some(to) != end.as_ref()) else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        all.extend(values(source.as_mut(), end.as_ref(), &to));
        end = Some(to);
    }
    assert_eq!(all, numbered(1..=200), "nothing is lost or comes twice");
}

#[test]
fn what_no_batch_can_ask_for_any_more_is_removed() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("removed"), broker.client());
    let input = Input::of(broker.url(), &topic, &[]);
    let factory =
        MqttSourceFactory::default().with_settings(&SourceSettings { batches_retained: 2, ..Default::default() });
    let mut source = factory.unwrap().open(&input.spec, input.context()).unwrap();
    assert_eq!(next(source.as_mut(), None), None);
    for number in 1..=6 {
        client.publish(&topic, &number.to_string(), 1);
        let end = until(source.as_mut(), number);
        source.release(&end).unwrap();
        let at = |number: u64| Offset(number.into());
        let oldest = number.saturating_sub(2);
        assert_eq!(values(source.as_mut(), Some(&at(oldest)), &at(number)).len() as u64, number - oldest);
        if let Some(before) = oldest.checked_sub(1) {
            let error = source.read(Some(&at(before)), &at(number), &[]).unwrap_err();
            assert!(error.to_string().contains("no longer has the rows"), "{error}");
        }
    }
    assert_eq!(input.files.list("spool").unwrap().len(), 2);
    drop(source);
    let mut source = input.open();
    assert_eq!(values(source.as_mut(), Some(&Offset(4.into())), &Offset(6.into())), ["5", "6"]);
}

#[test]
fn what_no_batch_can_ask_for_any_more_is_removed_by_runs_of_one_batch_too() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("short"), broker.client());
    let input = Input::of(broker.url(), &topic, &[]);
    let factory =
        MqttSourceFactory::default().with_settings(&SourceSettings { batches_retained: 2, ..Default::default() });
    let factory = factory.unwrap();
    let at = |number: u64| Offset(number.into());
    drop(input.begin());
    for number in 1_u64..=6 {
        client.publish(&topic, &number.to_string(), 1);
        let mut source = factory.open(&input.spec, input.context()).unwrap();
        source.prepare_available_now().unwrap();
        let before = number.checked_sub(1).filter(|before| *before > 0).map(at);
        assert_eq!(next(source.as_mut(), before.as_ref()), Some(at(number)));
        // The batch is in the log, so the one before it is done.
        if let Some(before) = &before {
            source.release(before).unwrap();
        }
        // It dies, and the batch is run again.
        drop(source);
        let mut source = factory.open(&input.spec, input.context()).unwrap();
        let oldest = number.saturating_sub(3);
        assert_eq!(values(source.as_mut(), Some(&at(oldest)), &at(number)).len() as u64, number - oldest);
        if let Some(before) = &before {
            source.release(before).unwrap();
        }
    }
    assert_eq!(input.files.list("spool").unwrap().len(), 3);
}
