//! What a database says, as an error of a source.

use crate::SourceError;
use millstream_client::database::DatabaseError;

/// A function that wraps an error of the database.
pub(crate) fn failed(name: &str, action: &'static str) -> impl Fn(DatabaseError) -> SourceError {
    let name = name.to_owned();
    move |source| SourceError::Database { name: name.clone(), action, source: Box::new(source) }
}
