//! Why a store cannot be opened.

/// A location has no store that this program can open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The location is no URL.
    #[error(transparent)]
    Url(#[from] url::ParseError),
    /// The store refuses the address or an option.
    #[error(transparent)]
    Store(#[from] object_store::Error),
    /// No store can be at such a location, or none that this program was built with.
    #[error("{reason}")]
    Refused {
        /// Why, and the way out.
        reason: String,
    },
}

impl StoreError {
    /// No store can be there.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }
}
