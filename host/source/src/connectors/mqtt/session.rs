//! The name by which the broker knows a query, and what was agreed with it.
//!
//! ```text
//!   session/000001            {"client":"millstream5f3a9c01d2b4e"}    written before the broker hears the name
//!   session/000001.000000     {"filters":["sensors/#"]}               the broker has confirmed these
//! ```
//!
//! A session that the broker has lost gets a successor, with the next number. Filters that were confirmed stand in a new
//! file when they change.

use crate::{SourceError, sealed};
use millstream_common::{DurableFiles, Options};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

const FOLDER: &str = "session";
/// All brokers take names of 23 letters and digits.
const LETTERS_OF_ITS_OWN: usize = 13;

#[derive(Debug, Serialize, Deserialize)]
struct Name {
    client: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Agreed {
    filters: Vec<String>,
}

/// A session of a broker, as the checkpoint knows it.
#[derive(Debug)]
pub(super) struct Session {
    name: String,
    files: Arc<dyn DurableFiles>,
    /// Which one of the query it is, from 1 on.
    pub(super) number: u64,
    /// The name of the client.
    pub(super) client: String,
    /// The filters that the broker has confirmed; `None` as long as it has confirmed nothing.
    pub(super) filters: Option<Vec<String>>,
    /// The next number of an agreement.
    turn: u64,
}

impl Session {
    /// The session of the checkpoint, or the first one; `wanted` is the name that the user gives the client.
    pub(super) fn open(name: &str, files: Arc<dyn DurableFiles>, wanted: Option<&str>) -> Result<Self, SourceError> {
        let names = files.list(FOLDER).map_err(|source| SourceError::Log { name: name.to_owned(), source })?;
        let newest = names.iter().rev().find(|file| !file.contains('.'));
        let Some(number) = newest.and_then(|file| file.parse().ok()) else {
            return Self::begin(name, files, 1, wanted);
        };
        let Name { client } = document(name, files.as_ref(), &path(number))?;
        if let Some(other) = wanted.filter(|wanted| *wanted != client) {
            let reason = format!("messages wait for this query under the name `{client}`; leave that name");
            return Err(Options::invalid(&format!("source `{name}`"), "clientId", other, &reason).into());
        }
        let (mut filters, mut turn) = (None, 0);
        let agreements = format!("{number:06}.");
        if let Some(file) = names.iter().rev().find(|file| file.starts_with(&agreements)) {
            let Agreed { filters: agreed } = document(name, files.as_ref(), &format!("{FOLDER}/{file}"))?;
            filters = Some(agreed);
            turn = file.rsplit('.').next().and_then(|turn| turn.parse::<u64>().ok()).map_or(0, |turn| turn + 1);
        }
        Ok(Self { name: name.to_owned(), files, number, client, filters, turn })
    }

    fn begin(name: &str, files: Arc<dyn DurableFiles>, number: u64, wanted: Option<&str>) -> Result<Self, SourceError> {
        let client = wanted.map_or_else(of_its_own, str::to_owned);
        let document = Name { client };
        write(name, files.as_ref(), &path(number), &document)?;
        Ok(Self { name: name.to_owned(), files, number, client: document.client, filters: None, turn: 0 })
    }

    /// The session after this one, which is lost.
    pub(super) fn successor(&self, wanted: Option<&str>) -> Result<Self, SourceError> {
        Self::begin(&self.name, Arc::clone(&self.files), self.number + 1, wanted)
    }

    /// The broker has confirmed these filters, and has no others.
    pub(super) fn agree(&mut self, filters: &[String]) -> Result<(), SourceError> {
        if self.filters.as_deref() == Some(filters) {
            return Ok(());
        }
        let agreed = Agreed { filters: filters.to_vec() };
        write(&self.name, self.files.as_ref(), &format!("{}.{:06}", path(self.number), self.turn), &agreed)?;
        self.turn += 1;
        self.filters = Some(agreed.filters);
        Ok(())
    }
}

fn path(number: u64) -> String {
    format!("{FOLDER}/{number:06}")
}

/// A name that no other client has.
fn of_its_own() -> String {
    let mut unique = format!("{:016x}", RandomState::new().build_hasher().finish());
    unique.truncate(LETTERS_OF_ITS_OWN);
    format!("millstream{unique}")
}

fn document<T: DeserializeOwned>(name: &str, files: &dyn DurableFiles, path: &str) -> Result<T, SourceError> {
    let wrong = |reason: &str| sealed::damaged(name, files, path, reason);
    let text = sealed::read(name, files, path)?.ok_or_else(|| wrong("it vanished"))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))
}

fn write(name: &str, files: &dyn DurableFiles, path: &str, document: &impl Serialize) -> Result<(), SourceError> {
    let text = serde_json::to_string(document);
    let text = text.map_err(|error| sealed::damaged(name, files, path, &error.to_string()))?;
    sealed::write(name, files, path, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::MemoryFiles;

    #[test]
    fn a_name_is_taken_once_and_agreements_are_kept() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let open = |wanted: Option<&str>| Session::open("s", Arc::clone(&files), wanted);
        let mut session = open(None).unwrap();
        let client = session.client.clone();
        assert!(client.len() == 23 && client.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{client}");
        assert_eq!(open(None).unwrap().filters, None, "nothing is confirmed yet");
        let (one, two) = (vec!["a".to_owned()], vec!["a".to_owned(), "b/#".to_owned()]);
        session.agree(&one).unwrap();
        session.agree(&one).unwrap();
        session.agree(&two).unwrap();
        let mut again = open(None).unwrap();
        assert_eq!((again.number, &again.client, again.filters.as_ref()), (1, &client, Some(&two)));
        again.agree(&one).unwrap();
        assert_eq!(open(Some(&client)).unwrap().filters, Some(one));
        let error = open(Some("other")).unwrap_err().to_string();
        assert!(error.contains(&client) && error.contains("clientId"), "{error}");
        let next = again.successor(None).unwrap();
        assert_eq!((next.number, next.filters.as_ref()), (2, None));
        assert_ne!(next.client, client);
        assert_eq!(open(None).unwrap().client, next.client);
    }
}
