//! What the server no longer has, and what becomes of the query then.

use super::id::EntryId;
use crate::SourceError;
use std::fmt;

/// Entries that were not read and cannot be any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) stream: String,
    /// They come behind this id.
    pub(super) after: EntryId,
    /// What comes behind them, or the last of them; `None` when nobody can say.
    pub(super) until: Option<EntryId>,
    /// How many they are; `None` when nobody can say.
    pub(super) count: Option<u64>,
    pub(super) why: String,
}

impl Loss {
    /// How many entries; what nobody can count is one.
    pub(super) fn size(&self) -> u64 {
        self.count.unwrap_or(1)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, after, until, count, why } = self;
        match count {
            Some(1) => write!(f, "1 entry")?,
            Some(count) => write!(f, "{count} entries")?,
            None => write!(f, "entries")?,
        }
        match until {
            Some(until) => write!(f, " of stream `{stream}` between {after} and {until}")?,
            None => write!(f, " of stream `{stream}` after {after}")?,
        }
        write!(f, "{} gone: {why}", if *count == Some(1) { " is" } else { " are" })
    }
}

/// As [`crate::loss::judge`], which counts entries here.
pub(super) fn judge(name: &str, losses: &[Loss], fails: bool) -> Result<u64, SourceError> {
    crate::loss::judge(name, losses, Loss::size, fails)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_its_range_and_ends_the_query_or_is_counted() {
        let id = |text: &str| text.parse::<EntryId>().unwrap();
        let loss = |until: Option<&str>, count| Loss {
            stream: "clicks".into(),
            after: id("5-0"),
            until: until.map(id),
            count,
            why: "they were trimmed".into(),
        };
        let losses = [loss(Some("9-0"), Some(3)), loss(None, None), loss(Some("6-0"), Some(1))];
        assert_eq!(
            judge("s", &losses, true).unwrap_err().to_string(),
            "source `s` has lost data: 3 entries of stream `clicks` between 5-0 and 9-0 are gone: they were trimmed; \
             entries of stream `clicks` after 5-0 are gone: they were trimmed; \
             1 entry of stream `clicks` between 5-0 and 6-0 is gone: they were trimmed"
        );
        assert_eq!(judge("s", &losses, false).unwrap(), 5);
        assert_eq!(judge("s", &[], true).unwrap(), 0);
    }
}
