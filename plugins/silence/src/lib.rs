//! Tells of sensors that have fallen silent, and of those that are back.

use millstream_sdk::processor::prelude::*;

/// How long a sensor may be silent, in milliseconds of event time.
const PATIENCE_MS: i64 = 5 * 60 * 1000;

/// What a sensor measured.
#[derive(Clone, Debug, PartialEq, Row)]
pub struct Reading {
    at: Timestamp,
    celsius: f64,
}

/// A sensor is `silent` since it should have been heard, or `back`.
#[derive(Clone, Debug, PartialEq, Row)]
pub struct Alert {
    sensor: String,
    what: String,
    at: Timestamp,
    /// The last that was measured.
    celsius: f64,
}

/// `silence(TABLE(readings) PARTITION BY sensor)`.
pub struct Silence {
    last: ValueState<Reading>,
    is_silent: ValueState<bool>,
}

impl Processor for Silence {
    const NAME: &'static str = "silence";
    const KEY: &'static str = "sensor";
    const TIME_MODE: TimeMode = TimeMode::EventTime;
    type Key = String;
    type Input = Reading;
    type Output = Alert;
    type Initial = NoInitial;

    fn init(state: &mut Handle) -> Self {
        Self { last: state.value("last"), is_silent: state.value("is_silent") }
    }

    fn handle_input_rows(&mut self, sensor: &String, mut rows: Vec<Reading>, call: &mut Call<Alert>) -> KeyResult {
        rows.sort_by_key(|row| row.at);
        if let (true, Some(first)) = (self.is_silent.exists(), rows.first()) {
            let (what, at, celsius) = ("back".into(), first.at, first.celsius);
            call.emit(Alert { sensor: sensor.clone(), what, at, celsius });
            self.is_silent.clear();
        }
        // Rows may come out of order, within the delay of the watermark.
        let newest = self.last.get().into_iter().chain(rows).max_by_key(|row| row.at);
        if let Some(newest) = newest {
            call.timers().into_iter().for_each(|due| call.delete_timer(due));
            call.register_timer(newest.at.0 / 1000 + PATIENCE_MS);
            self.last.update(newest);
        }
        Ok(())
    }

    fn handle_expired_timer(&mut self, sensor: &String, due_ms: i64, call: &mut Call<Alert>) -> KeyResult {
        let celsius = self.last.get().map_or(f64::NAN, |last| last.celsius);
        let (what, at) = ("silent".into(), Timestamp(due_ms * 1000));
        call.emit(Alert { sensor: sensor.clone(), what, at, celsius });
        self.is_silent.update(true);
        Ok(())
    }
}

plugin!(processors: Silence);

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(minute: i64, celsius: f64) -> (String, Reading) {
        ("attic".into(), Reading { at: Timestamp(minute * 60_000_000), celsius })
    }

    fn shown(alerts: Result<Vec<Alert>, KeyError>) -> Vec<String> {
        let text = |alert: Alert| format!("{} {} {}", alert.what, alert.at.0 / 60_000_000, alert.celsius);
        alerts.unwrap().into_iter().map(text).collect()
    }

    #[test]
    fn a_sensor_is_silent_five_minutes_after_its_newest_reading_and_back_with_the_next() {
        let mut tester = ProcessorTester::<Silence>::new();
        assert!(shown(tester.process([reading(3, 20.5), reading(1, 19.0)])).is_empty());
        assert!(shown(tester.process([reading(2, 30.0)])).is_empty(), "an older one changes nothing");
        assert!(shown(tester.set_watermark_ms(8 * 60_000 - 1)).is_empty());
        assert_eq!(shown(tester.set_watermark_ms(8 * 60_000)), ["silent 8 20.5"]);
        assert!(shown(tester.set_watermark_ms(60 * 60_000)).is_empty(), "it is told once");
        assert_eq!(shown(tester.process([reading(70, 21.0), reading(71, 22.0)])), ["back 70 21"]);
        assert_eq!(tester.timers(&"attic".to_owned()), [76 * 60_000]);
    }
}
