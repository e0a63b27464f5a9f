//! Triggers as the query file has them.

use millstream_common::{Trigger, duration};
use std::time::Duration;

/// Parses `default`, `once`, `available now`, or a duration, which is the interval of processing time.
pub(super) fn parse(text: &str) -> Result<Trigger, String> {
    let plain: String = text.to_ascii_lowercase().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    match plain.as_str() {
        "default" => return Ok(Trigger::Default),
        "once" => return Ok(Trigger::Once),
        "availablenow" => return Ok(Trigger::AvailableNow),
        _ => {}
    }
    let expected = "write `default`, `once`, `available now`, or an interval such as `10 seconds`";
    let micros = duration::parse_micros(text).map_err(|_| expected.to_owned())?;
    match u64::try_from(micros) {
        Ok(0) => Ok(Trigger::Default),
        // A batch cannot be asked for more often than the clock counts.
        Ok(micros) => Ok(Trigger::ProcessingTime(Duration::from_millis(micros.div_ceil(1000)))),
        Err(_) => Err("an interval cannot be negative".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_as_people_write_them() {
        for text in ["available now", "availableNow", "available-now", "AVAILABLE_NOW"] {
            assert_eq!(parse(text), Ok(Trigger::AvailableNow), "{text}");
        }
        assert_eq!(parse("Once"), Ok(Trigger::Once));
        assert_eq!(parse("0 seconds"), Ok(Trigger::Default));
        assert_eq!(parse("10 seconds"), Ok(Trigger::ProcessingTime(Duration::from_secs(10))));
        for text in ["", "sometimes", "-1 second", "10"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
