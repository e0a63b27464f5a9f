//! Where the counts go.

use super::verdict::Found;
use crate::{Isolation, Kafka};
use anyhow::{Result, bail};

/// A place for the counts, or several that get all of them each.
pub trait Output {
    /// What the host is told of it.
    fn arguments(&self) -> Vec<String>;

    /// How many windows and keys are there, in the place that has the fewest.
    ///
    /// # Errors
    /// When it cannot be read.
    fn count(&self) -> Result<u64>;

    /// The counts that are there now, by the names of the places.
    ///
    /// # Errors
    /// When it cannot be read, or holds what is no count.
    fn found(&self) -> Result<Vec<(String, Found)>>;

    /// How many records it holds that no reader is to see, for people.
    ///
    /// # Errors
    /// When it cannot be read.
    fn unseen(&self) -> Result<u64> {
        Ok(0)
    }

    /// Lets something happen to its servers, while the host runs that is killed as the `kill`-th one; answers what.
    ///
    /// # Errors
    /// When a server does not end or start.
    fn disturb(&self, kill: u64) -> Result<Option<String>> {
        let _ = kill;
        Ok(None)
    }

    /// Starts whatever is down.
    ///
    /// # Errors
    /// When it does not start.
    fn calm(&self) -> Result<()> {
        Ok(())
    }
}

/// A topic of the brokers that have the records too.
#[derive(Debug)]
pub(super) struct Topic<'a> {
    kafka: &'a Kafka,
}

/// Its name.
const TOPIC: &str = "counts";

impl<'a> Topic<'a> {
    pub(super) fn create(kafka: &'a Kafka) -> Result<Self> {
        kafka.create_topic(TOPIC, 3, &[])?;
        Ok(Self { kafka })
    }
}

impl Output for Topic<'_> {
    fn arguments(&self) -> Vec<String> {
        vec![TOPIC.to_owned()]
    }

    fn count(&self) -> Result<u64> {
        Ok(self.found()?.iter().map(|(_, found)| found.len()).sum())
    }

    fn found(&self) -> Result<Vec<(String, Found)>> {
        let (mut found, mut wrong) = (Found::default(), None);
        self.kafka.for_each(TOPIC, Isolation::Stable, |record| {
            let key = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default()).into_owned();
            if let Err(error) = found.add(&key, &record.text()) {
                wrong.get_or_insert(error);
            }
        })?;
        match wrong {
            None => Ok(vec![("Kafka".to_owned(), found)]),
            Some(error) => bail!(error),
        }
    }

    fn unseen(&self) -> Result<u64> {
        // What the last life had open is aborted, and what it had committed is there.
        let all = u64::try_from(self.kafka.try_read(TOPIC, Isolation::Uncommitted)?.len())?;
        Ok(all.saturating_sub(self.count()?))
    }
}
