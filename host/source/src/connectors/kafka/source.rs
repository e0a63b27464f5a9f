//! The Kafka source: lookup, journal and readers behind the contract of a source.

use super::admission::{self, Patience};
use super::commits::Committer;
use super::config::KafkaConfig;
use super::journal::{Journal, of_topic};
use super::lookup::Lookup;
use super::loss::{self, Loss};
use super::offset::{self, Positions, TopicPartition};
use super::ranges::{self, Piece};
use super::reader::{ReadPieces, Reader, Task};
use super::starting::Bounds;
use crate::{CommitCallback, Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many offsets a batch query reads at a time, where the user names no limit.
const BATCH_QUERY_OFFSETS: u64 = 500_000;
/// What was planned this long ago may be another topic by now: a topic is not removed and made again any quicker.
const FRESH: Duration = Duration::from_millis(50);
/// Sources of this process, for names of groups that nobody else has.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Makes Kafka sources.
#[derive(Debug, Clone, Copy)]
pub struct KafkaSourceFactory;

impl SourceFactory for KafkaSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(KafkaConfig::new(spec)?.schema())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Bounds::check_stream(&format!("source `{}`", spec.name), &spec.options)?;
        Ok(Box::new(KafkaSource::new(spec, context, false)?))
    }

    fn open_bounded(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let source = KafkaSource::new(spec, context, true)?;
        source.config.bounds.check_batch(&format!("source `{}`", spec.name))?;
        for name in ["minOffsetsPerTrigger", "maxTriggerDelay"] {
            if spec.options.get(name).is_some() {
                tracing::warn!(source = spec.name, "option `{name}` is ignored in a batch query");
            }
        }
        Ok(Box::new(source))
    }
}

/// The source.
pub(super) struct KafkaSource {
    pub(super) name: String,
    pub(super) config: KafkaConfig,
    pub(super) context: SourceContext,
    schema: SchemaRef,
    /// Whether it is read to its end once.
    pub(super) is_batch: bool,
    pub(super) journal: Journal,
    lookup: Option<Arc<Lookup>>,
    readers: Vec<Reader>,
    committer: Option<Committer>,
    /// The most offsets that a partition gives a batch.
    pub(super) most_of_partition: Option<u64>,
    group: String,
    /// What there was when everything available was fixed.
    pub(super) frozen: Option<Positions>,
    /// Which topics those were.
    pub(super) frozen_ids: BTreeMap<String, String>,
    /// The newest offsets that were seen.
    pub(super) latest: Option<Positions>,
    /// The end that was answered last: all that could be wrong with it has been looked at.
    pub(super) answered: Option<Positions>,
    /// When that was.
    answered_at: Instant,
    /// Whether the last range that was read had lost its beginning: then that of the next is looked for.
    pub(super) has_lost: bool,
    pub(super) patience: Option<Patience>,
    /// How many offsets are known to be lost.
    pub(super) lost: u64,
}

impl KafkaSource {
    fn new(spec: &SourceSpec, context: SourceContext, is_batch: bool) -> Result<Self, SourceError> {
        let config = KafkaConfig::new(spec)?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let group = format!("{}-{:x}-{:x}-{number:x}", config.group_prefix, context.clock.now_ms(), std::process::id());
        Ok(Self {
            name: spec.name.clone(),
            schema: config.schema(),
            journal: Journal::open(&spec.name, Arc::clone(&context.files))?,
            patience: config.patience.clone(),
            config,
            context,
            is_batch,
            lookup: None,
            readers: Vec::new(),
            committer: None,
            most_of_partition: None,
            group,
            frozen: None,
            frozen_ids: BTreeMap::new(),
            latest: None,
            answered: None,
            answered_at: Instant::now(),
            has_lost: false,
            lost: 0,
        })
    }

    /// The client for questions; made when it is needed first.
    pub(super) fn lookup(&mut self) -> Result<Arc<Lookup>, SourceError> {
        if let Some(lookup) = &self.lookup {
            return Ok(Arc::clone(lookup));
        }
        let lookup = Arc::new(Lookup::new(&self.name, &self.config, self.context.stop.clone())?);
        self.lookup = Some(Arc::clone(&lookup));
        Ok(lookup)
    }

    /// The positions of a logged offset.
    pub(super) fn positions(&self, offset: &Offset) -> Result<Positions, SourceError> {
        offset::parse(&offset.0, 0)
            .map_err(|_| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    /// Ends the query over losses, or counts them.
    pub(super) fn judge(&mut self, losses: &[Loss]) -> Result<(), SourceError> {
        self.lost = self.lost.saturating_add(loss::judge(&self.name, losses, self.config.fails_on_loss)?);
        Ok(())
    }

    /// What of a range cannot be read any more because its topic or partition is another one now, or none. A range that
    /// was just answered has been looked at.
    fn missing(&mut self, to: &Positions) -> Result<BTreeSet<TopicPartition>, SourceError> {
        if self.answered.as_ref() == Some(to) {
            return Ok(BTreeSet::new());
        }
        let lookup = self.lookup()?;
        let there = lookup.partitions(&self.config.topics)?;
        let missing = to.keys().filter(|place| !there.contains(*place) || self.is_other(&lookup, &place.topic));
        Ok(missing.cloned().collect())
    }

    /// The offsets that a range holds, as pieces of partitions.
    fn pieces(&mut self, from: &Positions, to: &Positions) -> Result<Vec<Piece>, SourceError> {
        let missing = self.missing(to)?;
        let mut losses = Vec::new();
        let mut pieces = Vec::new();
        let topics: BTreeSet<&str> = to.keys().map(|place| &*place.topic).collect();
        for topic in topics {
            let (old, new) = (of_topic(from, topic), of_topic(to, topic));
            let is_restart = !old.is_empty() && self.journal.is_restart(topic, &old, &new);
            let begin = match is_restart {
                true => {
                    self.journal.read(topic, &old, &new)?;
                    // What was fetched ahead is of the old topic.
                    self.readers.iter_mut().for_each(|reader| reader.forget_topic(topic));
                    let there = new.keys().map(|partition| TopicPartition::new(topic, *partition));
                    let there = there.filter(|place| !missing.contains(place)).collect();
                    of_topic(&self.lookup()?.earliest(&there)?, topic)
                }
                false => old,
            };
            for (partition, until) in new {
                let place = TopicPartition::new(topic, partition);
                // What is found later is read from its start on.
                let from = begin.get(&partition).copied().unwrap_or(0);
                if until <= from {
                    continue;
                }
                if missing.contains(&place) {
                    let why = "the partition is no longer there, or is one of a new topic of the name".to_owned();
                    losses.push(Loss { place, from, until: Some(until), why });
                } else {
                    pieces.push(Piece { place, from, until });
                }
            }
        }
        self.judge(&losses)?;
        Ok(ranges::split(pieces, self.config.most_records, self.config.least_pieces))
    }

    /// The pieces whose records are those of another topic: one of the same name, that was made after the range was planned
    /// and before it was read.
    fn replaced(&mut self, pieces: &[Piece]) -> Result<BTreeSet<usize>, SourceError> {
        if self.answered_at.elapsed() < FRESH {
            return Ok(BTreeSet::new());
        }
        let lookup = self.lookup()?;
        lookup.partitions(&self.config.topics)?;
        let (mut others, mut losses) = (BTreeSet::new(), Vec::new());
        for (number, Piece { place, from, until }) in pieces.iter().enumerate() {
            if self.is_other(&lookup, &place.topic) {
                let why = "the topic was removed, and made again with another id, before they were read".to_owned();
                losses.push(Loss { place: place.clone(), from: *from, until: Some(*until), why });
                others.insert(number);
                self.readers.iter_mut().for_each(|reader| reader.forget_topic(&place.topic));
            }
        }
        self.judge(&losses)?;
        Ok(others)
    }

    /// Whether the topic of that name is not the one that is read.
    fn is_other(&self, lookup: &Lookup, topic: &str) -> bool {
        matches!((self.journal.id(topic), lookup.topic_id(topic)), (Some(old), Some(new)) if old != new)
    }

    /// Which reader reads which pieces: always the same partitions, so that what they fetched ahead is used.
    fn shares(&mut self, pieces: Vec<Piece>, to: &Positions) -> Result<Vec<Vec<(usize, Piece)>>, SourceError> {
        let partitions = to.len();
        let wanted = self.context.default_parallelism.clamp(1, partitions.max(pieces.len()).max(1));
        while self.readers.len() < wanted {
            let group = format!("{}-{}", self.group, self.readers.len());
            self.readers.push(Reader::new(&self.name, &self.config, partitions, &group)?);
        }
        let home: BTreeMap<&TopicPartition, usize> = to.keys().zip(0..).collect();
        let mut shares: Vec<Vec<(usize, Piece)>> = self.readers.iter().map(|_| Vec::new()).collect();
        let mut of_place: (Option<TopicPartition>, usize) = (None, 0);
        for (number, piece) in pieces.into_iter().enumerate() {
            let nth = if of_place.0.as_ref() == Some(&piece.place) { of_place.1 + 1 } else { 0 };
            of_place = (Some(piece.place.clone()), nth);
            // With a partition for every reader, pieces of one stay together, one behind the other.
            let step = if partitions >= wanted { 0 } else { nth };
            let home = home.get(&piece.place).copied().unwrap_or(0);
            shares[(home + step) % wanted].push((number, piece));
        }
        Ok(shares)
    }

    fn read_pieces(
        &mut self,
        shares: &[Vec<(usize, Piece)>],
        projection: &[usize],
    ) -> Result<Vec<ReadPieces>, SourceError> {
        let lookup = self.lookup()?;
        let schema = self.schema.project(projection);
        let schema: SchemaRef = Arc::new(
            schema.map_err(|error| SourceError::Schema { name: self.name.clone(), reason: error.to_string() })?,
        );
        let task = Task {
            config: &self.config,
            name: &self.name,
            lookup: &lookup,
            stop: &self.context.stop,
            schema: &schema,
            projection,
        };
        let busy: Vec<(&mut Reader, &Vec<(usize, Piece)>)> =
            self.readers.iter_mut().zip(shares).filter(|(_, share)| !share.is_empty()).collect();
        if busy.len() <= 1 {
            return busy.into_iter().map(|(reader, share)| reader.read(&task, share)).collect();
        }
        let task = &task;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                busy.into_iter().map(|(reader, share)| scope.spawn(move || reader.read(task, share))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }
}

impl Source for KafkaSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn description(&self) -> String {
        format!("KafkaV2[{}]", self.config.topics)
    }

    fn read_limit(&self) -> ReadLimit {
        match (self.config.most_offsets, &self.patience) {
            (Some(most), _) => ReadLimit::MaxRows(most),
            (None, _) if self.is_batch => ReadLimit::MaxRows(BATCH_QUERY_OFFSETS),
            // There is no most, but a least.
            (None, Some(_)) => ReadLimit::MaxRows(u64::MAX),
            (None, None) => ReadLimit::AllAvailable,
        }
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let at = match start {
            Some(start) => self.positions(start)?,
            None => self.initial()?,
        };
        let until = self.next(&at, limit)?;
        Ok(match until {
            Some(until) if until != at => {
                let offset = Offset(offset::to_json(&until));
                (self.answered, self.answered_at) = (Some(until), Instant::now());
                Some(offset)
            }
            _ => start.cloned(),
        })
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        self.latest.as_ref().map(|latest| Offset(offset::to_json(latest)))
    }

    fn metrics(&mut self, at: Option<&Offset>) -> BTreeMap<String, String> {
        let mut metrics = BTreeMap::new();
        let at = at.and_then(|at| self.positions(at).ok());
        let behind = at.zip(self.latest.as_ref()).and_then(|(at, latest)| admission::behind(&at, latest));
        if let Some((least, most, average)) = behind {
            metrics.insert("minOffsetsBehindLatest".to_owned(), least.to_string());
            metrics.insert("maxOffsetsBehindLatest".to_owned(), most.to_string());
            metrics.insert("avgOffsetsBehindLatest".to_owned(), format!("{average:?}"));
        }
        if self.lost > 0 {
            metrics.insert("offsetsLost".to_owned(), self.lost.to_string());
        }
        metrics
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let to = self.positions(end)?;
        let from = match start {
            Some(start) => self.positions(start)?,
            None => self.initial()?,
        };
        if from == to {
            return Ok(Vec::new());
        }
        let pieces = self.pieces(&from, &to)?;
        if pieces.is_empty() {
            return Ok(Vec::new());
        }
        let shares = self.shares(pieces.clone(), &to)?;
        let mut lists = Vec::new();
        let mut losses = Vec::new();
        for (read, lost) in self.read_pieces(&shares, projection)? {
            lists.extend(read);
            losses.extend(lost);
        }
        self.has_lost = !losses.is_empty();
        self.lost = losses.iter().map(Loss::size).fold(self.lost, u64::saturating_add);
        let others = self.replaced(&pieces)?;
        lists.retain(|(number, _)| !others.contains(number));
        lists.sort_by_key(|(number, _)| *number);
        Ok(lists.into_iter().map(|(_, batches)| batches).filter(|batches| !batches.is_empty()).collect())
    }

    fn begin(&mut self) -> Result<Option<Offset>, SourceError> {
        Ok(Some(Offset(offset::to_json(&self.initial()?))))
    }

    fn limit_partitions(&mut self, rows: u64) -> bool {
        self.most_of_partition = Some(rows);
        true
    }

    fn commit_offsets(&mut self, offsets: &Offset, done: CommitCallback) -> Result<(), SourceError> {
        let offsets = self.positions(offsets)?;
        let committer = match self.committer.take() {
            Some(committer) => committer,
            None => Committer::start(&self.name, &self.config)?,
        };
        self.committer.insert(committer).commit(offsets, done);
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.freeze()
    }

    fn stop(&mut self) {
        self.committer = None;
        self.readers.clear();
        self.lookup = None;
    }
}
