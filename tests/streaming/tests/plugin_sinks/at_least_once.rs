//! A sink without a transaction: rows come again with their (partition, batch), and who knows that counts them once.

use crate::ledger::Mishap;
use crate::place::{BATCHES, COUNTS, Place, ROWS, plugin};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, QueryId};
use millstream_sink::connectors::plugin::PluginSinkFactory;
use millstream_sink::contract::{Subject, sink};
use millstream_sink::{Guarantee, SinkSpec};
use millstream_wasm::{PluginHost, PluginSlot};
use std::collections::BTreeMap;
use std::sync::Arc;

fn slot(file: &str) -> Arc<PluginSlot> {
    let host = PluginHost::new().unwrap();
    let plugin = plugin(file);
    let component = host.load(&plugin.name, &plugin.component).unwrap();
    PluginSlot::new(&plugin.name, host, component, plugin.limits, plugin.on_fault)
}

#[test]
fn a_plugin_keeps_the_contract_of_sinks() {
    let ledger = crate::ledger::Ledger::start();
    ledger.book().knows_places = true;
    let factory = Arc::new(PluginSinkFactory::new(vec![slot("web_sink")]));
    let spec = SinkSpec {
        format: "plugin".into(),
        options: Options::new().with("plugin", "out").with("url", ledger.url()).with("partitions", "3"),
    };
    let value = |line: &String| line.trim_start_matches(r#"{"value":""#).trim_end_matches(r#""}"#).to_owned();
    sink(&mut Subject {
        factory,
        spec,
        query: QueryId("00000000-0000-0000-0000-000000000001".parse().unwrap()),
        written: Some(&mut || ledger.batches().values().flatten().map(value).collect()),
        counts_once: true,
    });
}

#[test]
fn what_it_promises_is_what_its_component_has() {
    for (file, guarantee) in [("web_sink", Guarantee::AtLeastOnce), ("ledger_sink", Guarantee::ExactlyOnce)] {
        let factory: Arc<dyn millstream_sink::SinkFactory> = Arc::new(PluginSinkFactory::new(vec![slot(file)]));
        let options = Options::new().with("plugin", "out").with("url", "http://127.0.0.1:1");
        let context = millstream_sink::SinkContext {
            query: QueryId("00000000-0000-0000-0000-000000000001".parse().unwrap()),
            query_name: None,
            clock: Arc::new(millstream_common::ManualClock::at(0)),
            stop: millstream_common::StopSignal::new(),
        };
        let sink = factory.open(&SinkSpec { format: "plugin".into(), options }, context).unwrap();
        assert_eq!(sink.guarantee(), guarantee, "{file}");
    }
}

/// Each partition of each batch, with each list of lines that was seen of it.
fn shown(place: &Place) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut shown = BTreeMap::new();
    for (at, lists) in &place.ledger.book().seen {
        let at = at.split_once('/').unwrap().1.to_owned();
        let sorted = lists.iter().map(|lines| {
            let mut lines = lines.clone();
            lines.sort();
            lines
        });
        shown.insert(at, sorted.collect());
    }
    shown
}

#[test]
fn rows_come_again_only_with_their_partition_and_batch() {
    let whole = Place::new("web_sink", COUNTS, 2);
    whole.world.crash_at(usize::MAX, Moment::Before);
    whole.run_all(1, false);
    let (once, writes) = (shown(&whole), whole.world.history().len());
    assert_eq!(once.len(), 2 * BATCHES.len(), "a partition without rows is opened and closed, too");
    let mut again = 0;
    for write in 1..=writes {
        let place = Place::new("web_sink", COUNTS, 2);
        place.world.crash_at(write, Moment::Before);
        place.run_all(4, false);
        let shown = shown(&place);
        assert_eq!(shown.keys().collect::<Vec<_>>(), once.keys().collect::<Vec<_>>());
        for (at, lists) in &shown {
            again += lists.len() - 1;
            assert!(
                lists.iter().all(|lines| *lines == once[at][0]),
                "crash {write}: {at} was {once:?} and is {shown:?}"
            );
        }
    }
    assert!(again > 0, "no crash made a batch come again");
}

#[test]
fn a_sink_that_knows_what_it_has_says_no_and_has_each_row_once() {
    for mishap in [Mishap::Refused, Mishap::Unheard] {
        for call in 0..BATCHES.len() * 2 {
            let place = Place::new("web_sink", ROWS, 1);
            place.ledger.book().knows_places = true;
            place.ledger.book().mishap = Some((call, mishap));
            let failures = place.run_all(3, false);
            assert_eq!(failures.len(), 1, "{failures:?}");
            let shown = shown(&place);
            assert!(shown.len() == BATCHES.len() && shown.values().all(|lists| lists.len() == 1), "{call}: {shown:?}");
        }
    }
}
