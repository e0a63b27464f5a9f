//! What Kafka no longer has, and what becomes of the query then.

use super::offset::TopicPartition;
use crate::SourceError;
use std::fmt;

/// Offsets that were not read and cannot be any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) place: TopicPartition,
    pub(super) from: i64,
    /// The end, exclusive; `None` when nobody can say how much there was.
    pub(super) until: Option<i64>,
    pub(super) why: String,
}

impl Loss {
    /// How many offsets; what nobody can count is one.
    pub(super) fn size(&self) -> u64 {
        let size = self.until.map_or(1, |until| until.saturating_sub(self.from).max(0));
        u64::try_from(size).unwrap_or(0)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, from, until, why } = self;
        match until {
            Some(until) => write!(f, "offsets [{from}, {until}) of {place} are gone: {why}"),
            None => write!(f, "offsets from {from} on of {place} are gone: {why}"),
        }
    }
}

/// As [`crate::loss::judge`], which counts offsets here.
pub(super) fn judge(name: &str, losses: &[Loss], fails: bool) -> Result<u64, SourceError> {
    crate::loss::judge(name, losses, Loss::size, fails)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_its_range_and_ends_the_query_or_is_counted() {
        let place = TopicPartition::new("clicks", 3);
        let gap =
            Loss { place: place.clone(), from: 100, until: Some(250), why: "the partition begins at 250 now".into() };
        let end = Loss { place, from: 250, until: None, why: "the partition is no longer there".into() };
        let text = judge("t", &[gap.clone(), end.clone()], true).unwrap_err().to_string();
        assert_eq!(
            text,
            "source `t` has lost data: offsets [100, 250) of partition 3 of topic `clicks` are gone: the partition begins \
             at 250 now; offsets from 250 on of partition 3 of topic `clicks` are gone: the partition is no longer there"
        );
        assert_eq!(judge("t", &[gap, end], false).unwrap(), 151);
        assert_eq!(judge("t", &[], true).unwrap(), 0);
    }
}
