//! What the server no longer has, and what becomes of the query then.

use super::sequences::Sequences;
use crate::SourceError;
use std::fmt;

/// Messages that were not read and cannot be any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) stream: String,
    pub(super) what: Lost,
    pub(super) why: String,
}

/// Which they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// These.
    Numbers(Sequences),
    /// Those behind this one, as many as there were.
    After(u64),
}

impl Loss {
    /// How many messages; what nobody can count is one.
    pub(super) fn size(&self) -> u64 {
        match &self.what {
            Lost::Numbers(numbers) => numbers.count(),
            Lost::After(_) => 1,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, what, why } = self;
        match what {
            Lost::Numbers(numbers) if numbers.count() == 1 => {
                write!(f, "message {numbers} of stream `{stream}` is gone: {why}")
            }
            Lost::Numbers(numbers) => {
                write!(f, "{} messages of stream `{stream}` are gone, {numbers}: {why}", numbers.count())
            }
            Lost::After(last) => write!(f, "messages of stream `{stream}` after {last} are gone: {why}"),
        }
    }
}

/// As [`crate::loss::judge`], which counts messages here.
pub(super) fn judge(name: &str, losses: &[Loss], fails: bool) -> Result<u64, SourceError> {
    crate::loss::judge(name, losses, Loss::size, fails)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_its_numbers_and_ends_the_query_or_is_counted() {
        let loss = |what| Loss { stream: "S".into(), what, why: "they were removed".into() };
        let numbers = |after, until| Lost::Numbers(Sequences::between(after, until));
        let losses = [loss(numbers(5, 8)), loss(numbers(9, 10)), loss(Lost::After(5))];
        assert_eq!(
            judge("s", &losses, true).unwrap_err().to_string(),
            "source `s` has lost data: 3 messages of stream `S` are gone, 6 to 8: they were removed; \
             message 10 of stream `S` is gone: they were removed; \
             messages of stream `S` after 5 are gone: they were removed"
        );
        assert_eq!(judge("s", &losses, false).unwrap(), 5);
        assert_eq!(judge("s", &[], true).unwrap(), 0);
    }
}
