//! A session that the broker no longer has, and what becomes of the query then.

use std::fmt;

/// Messages that a broker did not keep, because it has forgotten for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LostSession {
    /// The broker.
    pub(super) place: String,
    /// The name of the client whose session it was.
    pub(super) client: String,
    /// The filters of topics that it had.
    pub(super) filters: Vec<String>,
}

impl fmt::Display for LostSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, client, filters } = self;
        write!(
            f,
            "messages to topics `{}` since the query was last connected: `{place}` has no session of client `{client}` any \
             more, so it kept none of them",
            filters.join(", ")
        )
    }
}
