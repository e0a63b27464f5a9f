//! Sessions that a broker has lost.

use crate::{Input, all_now, next, until, values};
use millstream_common::{Fault, Hint, ReadLimit, describe_chain};
use mqtt_tests::Broker;

#[test]
fn a_lost_session_ends_the_query_each_time_or_is_told_and_counted() {
    let Some(broker) = Broker::own("") else { return };
    let mut input = Input::of(broker.url(), "t/#", &[]);
    let mut source = input.begin();
    broker.client().publish("t/a", "1", 1);
    let end = until(source.as_mut(), 1);
    drop(source);
    broker.stop();
    broker.forget();
    broker.restart();
    broker.client().publish("t/a", "lost", 1);
    for _ in 0..3 {
        let mut source = input.open();
        assert_eq!(values(source.as_mut(), None, &end), ["1"], "what is in the spool is there");
        let mut asked = || source.latest_offset(Some(&end), ReadLimit::AllAvailable);
        let error = asked().unwrap_err();
        let text = describe_chain(&error);
        assert!(text.contains("has lost data: messages to topics `t/#` since the query was last connected"), "{text}");
        assert!(error.fault() == Fault::Data && error.hint().unwrap().contains("failOnDataLoss"), "{text}");
    }
    input.set("failOnDataLoss", "false");
    let mut source = input.open();
    assert_eq!(next(source.as_mut(), Some(&end)), Some(end.clone()));
    assert_eq!(source.metrics(Some(&end)).get("sessionsLost").map(String::as_str), Some("1"));
    broker.client().publish("t/a", "2", 1);
    until(source.as_mut(), 2);
    drop(source);
    broker.client().publish("t/a", "3", 1);
    input.set("failOnDataLoss", "true");
    assert_eq!(all_now(input.open().as_mut()), ["1", "2", "3"], "the new session is as good as the old one");
}

#[test]
fn a_broker_that_comes_back_without_the_session_is_noticed_while_the_query_runs() {
    let Some(broker) = Broker::own("") else { return };
    for fails in [true, false] {
        let input = Input::of(broker.url(), "t", &[("failOnDataLoss", if fails { "true" } else { "false" })]);
        let mut source = input.begin();
        broker.stop();
        broker.forget();
        broker.restart();
        let begin = std::time::Instant::now();
        let told = loop {
            match source.latest_offset(None, ReadLimit::AllAvailable) {
                Ok(_) if source.metrics(None).contains_key("sessionsLost") => break false,
                Ok(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
                Err(error) => break describe_chain(&error).contains("has lost data"),
            }
            assert!(begin.elapsed().as_secs() < 20, "nobody notices");
        };
        assert_eq!(told, fails);
    }
}
