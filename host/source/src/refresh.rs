//! How often a static table is read again.

use crate::{SourceError, SourceSpec};
use millstream_common::{Options, duration};

/// The name of the option.
pub(crate) const OPTION: &str = "refresh";

/// When a static table is read again while a query runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// Not at all: it is read when the query starts.
    Never,
    /// Before each batch.
    EveryBatch,
    /// Before a batch, when the last reading is so long ago.
    Every {
        /// In milliseconds.
        ms: i64,
    },
}

impl Refresh {
    /// What the option `refresh` of a table says.
    ///
    /// # Errors
    /// When it is neither `never`, `every batch` nor a duration.
    pub fn of(spec: &SourceSpec) -> Result<Self, SourceError> {
        let Some(text) = spec.options.get(OPTION) else { return Ok(Self::Never) };
        match text.trim().to_ascii_lowercase().as_str() {
            "never" => return Ok(Self::Never),
            "every batch" => return Ok(Self::EveryBatch),
            _ => {}
        }
        match duration::parse_micros(text) {
            Ok(micros) if micros >= 1000 => Ok(Self::Every { ms: micros / 1000 }),
            _ => {
                let owner = format!("table `{}`", spec.name);
                let reason = "write `never`, `every batch` or a duration such as `10 minutes`";
                Err(Options::invalid(&owner, OPTION, text, reason).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_never_every_batch_or_a_duration() {
        let of = |text: &str| {
            let options = Options::new().with("refresh", text);
            Refresh::of(&SourceSpec { name: "t".into(), format: "postgresql".into(), schema: None, options }).ok()
        };
        assert_eq!(of("never"), Some(Refresh::Never));
        assert_eq!(of("Every Batch"), Some(Refresh::EveryBatch));
        assert_eq!(of("10 minutes"), Some(Refresh::Every { ms: 600_000 }));
        assert_eq!(of("often"), None);
        assert_eq!(of("0 s"), None);
    }
}
