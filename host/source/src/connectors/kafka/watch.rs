//! What changed since the last batch: where a query begins, what is new, what is gone, what is another topic now.

use super::admission;
use super::commits::Group;
use super::journal::{Restart, distinct, of_topic, places};
use super::lookup::Lookup;
use super::loss::Loss;
use super::offset::{EARLIEST, LATEST, Positions, TopicPartition, first_of};
use super::source::KafkaSource;
use super::starting::{Bound, check_complete};
use super::topics::Topics;
use crate::SourceError;
use millstream_common::{Options, ReadLimit};
use std::collections::{BTreeMap, BTreeSet};

/// Which side of a query a bound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

/// What the brokers have.
struct View {
    there: BTreeSet<TopicPartition>,
    latest: Positions,
}

impl KafkaSource {
    /// Where the query began; decided once, and written down.
    pub(super) fn initial(&mut self) -> Result<Positions, SourceError> {
        if let Some(initial) = self.journal.initial() {
            return Ok(initial.clone());
        }
        let lookup = self.lookup()?;
        let there = lookup.partitions(&self.config.topics)?;
        self.check_there(&there)?;
        let default = if self.is_batch { Bound::Earliest } else { Bound::Latest };
        let bound = self.config.bounds.start.clone().unwrap_or(default);
        let initial = self.resolve(&lookup, &bound, &there, Side::Start)?;
        let ids = topics_of(&there).filter_map(|topic| Some((topic.to_owned(), lookup.topic_id(topic)?))).collect();
        self.journal.begin(initial.clone(), ids)?;
        Ok(initial)
    }

    /// Fixes what there is now, or where a batch query ends.
    pub(super) fn freeze(&mut self) -> Result<(), SourceError> {
        let initial = self.initial()?;
        let lookup = self.lookup()?;
        let there = lookup.partitions(&self.config.topics)?;
        let bound = self.config.bounds.end.clone().filter(|_| self.is_batch).unwrap_or(Bound::Latest);
        let mut end = self.resolve(&lookup, &bound, &there, Side::End)?;
        if self.is_batch {
            // An end before the beginning is an empty range.
            for (place, offset) in &mut end {
                *offset = (*offset).max(initial.get(place).copied().unwrap_or(0));
            }
        }
        self.frozen_ids =
            topics_of(&there).filter_map(|topic| Some((topic.to_owned(), lookup.topic_id(topic)?))).collect();
        self.frozen = Some(end);
        Ok(())
    }

    /// Partitions that are assigned must be there; topics that are not there yet may come, but not to a batch query.
    fn check_there(&self, there: &BTreeSet<TopicPartition>) -> Result<(), SourceError> {
        match &self.config.topics {
            Topics::Assign(wanted) => match wanted.iter().find(|place| !there.contains(*place)) {
                Some(place) => {
                    let (owner, reason) = (format!("source `{}`", self.name), format!("there is no {place}"));
                    Err(Options::invalid(&owner, "assign", &self.config.topics.to_string(), &reason).into())
                }
                None => Ok(()),
            },
            Topics::Subscribe(topics) => {
                for topic in topics.iter().filter(|topic| !there.iter().any(|place| *place.topic == ***topic)) {
                    if self.is_batch {
                        let (owner, reason) =
                            (format!("source `{}`", self.name), format!("there is no topic `{topic}`"));
                        return Err(
                            Options::invalid(&owner, "subscribe", &self.config.topics.to_string(), &reason).into()
                        );
                    }
                    tracing::warn!(source = self.name, "topic `{topic}` is not there yet");
                }
                Ok(())
            }
            Topics::Pattern { .. } => {
                if there.is_empty() {
                    tracing::warn!(source = self.name, "no topic matches {} yet", self.config.topics);
                }
                Ok(())
            }
        }
    }

    /// The offsets that a bound means.
    fn resolve(
        &mut self,
        lookup: &Lookup,
        bound: &Bound,
        there: &BTreeSet<TopicPartition>,
        side: Side,
    ) -> Result<Positions, SourceError> {
        let owner = format!("source `{}`", self.name);
        let invalid = |starting: &str, ending: &str, reason: &str| {
            let name = if side == Side::Start { starting } else { ending };
            let value = self.config.topics.to_string();
            SourceError::from(Options::invalid(&owner, name, &format!("that of {value}"), reason))
        };
        let (wanted, names) = match bound {
            Bound::Earliest => return lookup.earliest(there),
            Bound::Latest => return lookup.latest(there),
            Bound::Committed => {
                let committed = Group::new(&self.name, &self.config, self.context.stop.clone())?.committed(there)?;
                let open = there.iter().filter(|place| !committed.contains_key(*place)).cloned().collect();
                let mut begin = self.offsets(lookup, &committed, side)?;
                begin.extend(lookup.earliest(&open)?);
                return Ok(begin);
            }
            Bound::Offsets(given) => {
                check_complete(given, there).map_err(|reason| invalid("startingOffsets", "endingOffsets", &reason))?;
                return self.offsets(lookup, given, side);
            }
            Bound::Times(given) => {
                let names = ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp");
                check_complete(given, there).map_err(|reason| invalid(names.0, names.1, &reason))?;
                (given.clone(), names)
            }
            Bound::Time(time) => {
                (there.iter().map(|place| (place.clone(), *time)).collect(), ("startingTimestamp", "endingTimestamp"))
            }
        };
        let found = lookup.offsets(&wanted)?;
        let unmatched: BTreeSet<TopicPartition> =
            found.iter().filter(|(_, offset)| offset.is_none()).map(|(place, _)| place.clone()).collect();
        if let Some(place) = unmatched.first()
            && side == Side::Start
            && !self.config.bounds.begins_late_without_match
        {
            let time = wanted.get(place).copied().unwrap_or_default();
            let reason = format!(
                "{place} has no record from {time} on; set startingOffsetsByTimestampStrategy to latest to begin it at its end"
            );
            return Err(invalid(names.0, names.1, &reason));
        }
        let latest = lookup.latest(&unmatched)?;
        let matched = found.into_iter().filter_map(|(place, offset)| Some((place, offset?)));
        Ok(matched.chain(latest).collect())
    }

    /// Offsets as given; what is not there is a loss.
    fn offsets(&mut self, lookup: &Lookup, given: &Positions, side: Side) -> Result<Positions, SourceError> {
        let all: BTreeSet<TopicPartition> = given.keys().cloned().collect();
        let (earliest, latest) = (lookup.earliest(&all)?, lookup.latest(&all)?);
        let (mut resolved, mut losses) = (Positions::new(), Vec::new());
        for (place, offset) in given {
            let low = earliest.get(place).copied().unwrap_or(0);
            let high = latest.get(place).copied().unwrap_or(0);
            let offset = match *offset {
                EARLIEST => low,
                LATEST => high,
                offset if offset < low => {
                    let why = format!("the partition begins at offset {low}");
                    losses.push(Loss { place: place.clone(), from: offset, until: Some(low), why });
                    low
                }
                offset if offset > high => {
                    let why = format!("the partition ends at offset {high}");
                    losses.push(Loss { place: place.clone(), from: high, until: Some(offset), why });
                    if side == Side::Start { low } else { high }
                }
                offset => offset,
            };
            resolved.insert(place.clone(), offset);
        }
        self.judge(&losses)?;
        Ok(resolved)
    }

    /// Where a batch that begins at `at` ends; `None` when it is held back.
    pub(super) fn next(&mut self, at: &Positions, limit: ReadLimit) -> Result<Option<Positions>, SourceError> {
        let lookup = self.lookup()?;
        let view = self.observe(&lookup, at)?;
        if let Some(frozen) = &self.frozen {
            self.check_frozen(frozen, &lookup, &view)?;
        }
        let changes = Changes::new(self, &lookup, at, &view)?;
        self.judge(&changes.losses)?;

        let mut latest = self.frozen.clone().unwrap_or_else(|| view.latest.clone());
        latest.retain(|place, _| view.there.contains(place));
        let mut begin = self.begin(&lookup, at, &view)?;
        for (topic, earliest) in &changes.restarted {
            begin.retain(|place, _| *place.topic != **topic);
            begin.extend(places(topic, earliest));
        }
        let limited = match (limit, self.is_batch || self.frozen.is_some()) {
            (ReadLimit::MaxRows(most), is_bounded) => {
                let now_ms = self.context.clock.now_ms();
                // What is gone is told once, and then behind the query.
                let patience = self.patience.as_mut().filter(|_| !is_bounded && changes.losses.is_empty());
                if patience.is_some_and(|patience| !patience.lets_go(&begin, &latest, now_ms)) {
                    self.latest = Some(view.latest);
                    return Ok(None);
                }
                if most == u64::MAX { latest.clone() } else { admission::limited(&begin, &latest, most) }
            }
            _ => latest.clone(),
        };
        let mut until = match self.most_of_partition {
            Some(most) => admission::capped(&begin, limited, most),
            None => limited,
        };
        let mut restarts = Vec::new();
        for (topic, earliest) in &changes.restarted {
            let was = of_topic(at, topic);
            let left = distinct(&was, earliest, of_topic(&until, topic));
            until.extend(places(topic, &left));
            // Where nothing is to be read, and nothing was, there is no step to be told from another.
            if left != was {
                restarts.push(Restart { topic: topic.clone(), was, until: left });
            }
        }
        for restart in &changes.pending {
            until.retain(|place, _| *place.topic != *restart.topic);
            until.extend(places(&restart.topic, &restart.until));
        }
        self.journal.note(changes.ids, restarts)?;
        self.latest = Some(view.latest);
        Ok(Some(until))
    }

    /// Where the rows of a batch begin: at the offsets of the last one, and at the start of what is new. What is known to be
    /// gone takes no room in a batch.
    fn begin(&self, lookup: &Lookup, at: &Positions, view: &View) -> Result<Positions, SourceError> {
        let is_open = |place: &&TopicPartition| self.has_lost || !at.contains_key(*place);
        let places: BTreeSet<TopicPartition> = view.there.iter().filter(is_open).cloned().collect();
        let mut begin = at.clone();
        for (place, low) in lookup.earliest(&places)? {
            let at = begin.entry(place).or_insert(low);
            *at = low.max(*at);
        }
        Ok(begin)
    }

    /// Looks at the brokers, again when something seems to be gone: one that has just come may not know everything.
    fn observe(&self, lookup: &Lookup, at: &Positions) -> Result<View, SourceError> {
        let mut left = lookup.attempts();
        loop {
            let there = lookup.partitions(&self.config.topics)?;
            let latest = lookup.latest(&there)?;
            let is_sound = at.iter().all(|(place, offset)| latest.get(place).is_some_and(|latest| latest >= offset));
            left -= 1;
            if is_sound || left == 0 {
                return Ok(View { there, latest });
            }
            lookup.pause();
        }
    }

    /// What was fixed must stay until it is read.
    fn check_frozen(&self, frozen: &Positions, lookup: &Lookup, view: &View) -> Result<(), SourceError> {
        let fail = |what: String| Err(SourceError::DataLoss { name: self.name.clone(), what });
        for (topic, id) in &self.frozen_ids {
            if lookup.topic_id(topic).is_some_and(|new| new != *id) {
                return fail(format!(
                    "topic `{topic}` was removed, and made again with another id, after what is available was fixed"
                ));
            }
        }
        for (place, end) in frozen {
            match view.latest.get(place) {
                None => {
                    return fail(format!(
                        "{place} was there when what is available was fixed, up to offset {end}, and is gone"
                    ));
                }
                Some(latest) if latest < end => {
                    return fail(format!(
                        "{place} ended at offset {end} when what is available was fixed, and ends at {latest} now"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// What is not as the last batch left it.
#[derive(Default)]
struct Changes {
    losses: Vec<Loss>,
    /// Ids that are not written down.
    ids: BTreeMap<String, String>,
    /// Topics that were removed and made again, with their first offsets.
    restarted: BTreeMap<String, BTreeMap<i32, i64>>,
    /// Steps to new topics that were answered and may not be in the offset log.
    pending: Vec<Restart>,
}

impl Changes {
    fn new(source: &KafkaSource, lookup: &Lookup, at: &Positions, view: &View) -> Result<Self, SourceError> {
        let mut changes = Self::default();
        let known = topics_of(&view.there).map(str::to_owned);
        let topics: BTreeSet<String> = known.chain(at.keys().map(|place| place.topic.to_string())).collect();
        for topic in &topics {
            let was = of_topic(at, topic);
            let there: BTreeSet<TopicPartition> =
                view.there.range(first_of(topic)..).take_while(|place| *place.topic == **topic).cloned().collect();
            let (old, new) = (source.journal.id(topic), lookup.topic_id(topic));
            let is_another = !there.is_empty() && matches!((old, &new), (Some(old), Some(new)) if old != new);
            if let Some(new) = new.as_ref().filter(|new| !there.is_empty() && old != Some(new.as_str())) {
                changes.ids.insert(topic.clone(), new.clone());
            }
            if is_another && !was.is_empty() {
                changes.losses.extend(was.iter().map(|(partition, from)| {
                    let why = "the topic was removed, and made again with another id".to_owned();
                    Loss { place: TopicPartition::new(topic, *partition), from: *from, until: None, why }
                }));
                changes.restarted.insert(topic.clone(), of_topic(&lookup.earliest(&there)?, topic));
                continue;
            }
            if let Some(restart) = source.journal.unread(topic, &was) {
                changes.pending.push(restart.clone());
                continue;
            }
            let is_restarted = changes.look(topic, &was, view, (new.is_some(), source.config.topics.names(topic)));
            if is_restarted {
                changes.restarted.insert(topic.clone(), of_topic(&lookup.earliest(&there)?, topic));
            }
        }
        Ok(changes)
    }

    /// Partitions of a topic that are gone, or end before they were read; whether the topic is to be read anew.
    fn look(&mut self, topic: &str, was: &BTreeMap<i32, i64>, view: &View, (has_id, is_wanted): (bool, bool)) -> bool {
        let mut is_restarted = false;
        for (partition, from) in was {
            let place = TopicPartition::new(topic, *partition);
            match view.latest.get(&place) {
                None => {
                    let why = match is_wanted {
                        true => "the partition is no longer there".to_owned(),
                        false => "the topic is no longer among those that are read".to_owned(),
                    };
                    self.losses.push(Loss { place, from: *from, until: None, why });
                }
                Some(latest) if latest < from => {
                    let why = match has_id {
                        true => {
                            format!("the partition ends at offset {latest} now; brokers lost what was read already")
                        }
                        // Without ids nobody can tell a topic that was made again from one that lost its end.
                        false => {
                            format!("the partition ends at offset {latest} now; its topic may have been made again")
                        }
                    };
                    is_restarted |= !has_id;
                    self.losses.push(Loss { place, from: *latest, until: Some(*from), why });
                }
                Some(_) => {}
            }
        }
        is_restarted
    }
}

fn topics_of(places: &BTreeSet<TopicPartition>) -> impl Iterator<Item = &str> {
    let topics: BTreeSet<&str> = places.iter().map(|place| &*place.topic).collect();
    topics.into_iter()
}
