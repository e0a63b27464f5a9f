//! Streams: what each batch has of them, and the operations that make others of them.
//!
//! ```text
//!   input ──► flat_map ──► map ──► reduce_by_key ──► print           a node answers the rows of a time, once;
//!                                      └──► window ──► …             nodes with state are brought on batch by batch
//! ```
//!
//! Rule of its life: the graph is built before the start and never changes. An operation that may not be is remembered
//! in the stream that it gives, and told when an output operation is asked for, or at the start.
//!
//! It does not know when a batch is; the schedule asks.

mod keyed_windows;
mod pairs;
mod plugin;
mod stateless;
mod transform;
mod windows;

use crate::context::frame::Frame;
use crate::input::{CanCommitOffsets, Input};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::state::Stateful;
use crate::{DStreamError, Data, Refusal, Time, time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use plugin::PluginUse;

type ComputeFn<T> = dyn Fn(Time) -> Result<Option<Rdd<T>>, DStreamError> + Send + Sync;

/// What a node is beside its rows.
#[derive(Clone)]
pub(crate) enum Role {
    /// Of its parents alone.
    Plain,
    /// Of what was batches before.
    Stateful(Arc<dyn Stateful>),
    /// Of the world.
    Input(Arc<dyn Input>),
    /// Of a plugin.
    Plugin(Arc<PluginUse>),
}

/// A node of the graph, whatever its rows are.
pub(crate) trait AnyStream: Send + Sync {
    fn number(&self) -> usize;
    fn parents(&self) -> &[Arc<dyn AnyStream>];
    fn role(&self) -> &Role;
    fn slide_ms(&self) -> i64;
    fn refusal(&self) -> Option<&Refusal>;
    /// Makes sure that the node's rows of a time are there.
    fn touch(&self, time: Time) -> Result<(), DStreamError>;
    /// Forgets the rows of times before `from`.
    fn forget(&self, from: Time);
}

/// A node of the graph.
pub(crate) struct StreamCore<T> {
    number: usize,
    slide_ms: i64,
    pub(crate) frame: Arc<Frame>,
    parents: Vec<Arc<dyn AnyStream>>,
    role: Role,
    compute: Box<ComputeFn<T>>,
    generated: Mutex<BTreeMap<Time, Option<Rdd<T>>>>,
    refusal: Option<Refusal>,
}

impl<T: Data> StreamCore<T> {
    fn generated(&self) -> MutexGuard<'_, BTreeMap<Time, Option<Rdd<T>>>> {
        locked(&self.generated)
    }

    /// The rows of a time; `None` when the stream has none then.
    pub(crate) fn rows(&self, time: Time) -> Result<Option<Rdd<T>>, DStreamError> {
        if !self.frame.is_valid(self.slide_ms, time) {
            return Ok(None);
        }
        if let Some(rows) = self.generated().get(&time) {
            return Ok(rows.clone());
        }
        let rows = (self.compute)(time)?;
        self.generated().insert(time, rows.clone());
        Ok(rows)
    }
}

impl<T: Data> AnyStream for StreamCore<T> {
    fn number(&self) -> usize {
        self.number
    }
    fn parents(&self) -> &[Arc<dyn AnyStream>] {
        &self.parents
    }
    fn role(&self) -> &Role {
        &self.role
    }
    fn slide_ms(&self) -> i64 {
        self.slide_ms
    }
    fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }
    fn touch(&self, time: Time) -> Result<(), DStreamError> {
        self.rows(time).map(drop)
    }
    fn forget(&self, from: Time) {
        let mut generated = self.generated();
        *generated = generated.split_off(&from);
    }
}

/// A stream: the rows of each batch.
///
/// Operations give other streams and run nothing; an output operation (`print`, `foreach_rdd`, …) makes the context run
/// what it needs, batch by batch.
pub struct DStream<T> {
    pub(crate) core: Arc<StreamCore<T>>,
    pub(crate) outputs: Arc<crate::output::Outputs>,
}

impl<T> Clone for DStream<T> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), outputs: Arc::clone(&self.outputs) }
    }
}

impl<T> std::fmt::Debug for DStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DStream").field("number", &self.core.number).finish_non_exhaustive()
    }
}

/// What a new node is made of.
pub(crate) struct NewStream<T> {
    /// For a refusal.
    pub(crate) operation: &'static str,
    pub(crate) slide_ms: i64,
    pub(crate) parents: Vec<Arc<dyn AnyStream>>,
    pub(crate) role: Role,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) compute: Box<ComputeFn<T>>,
}

impl<T: Data> DStream<T> {
    /// A node. It is refused when one of its parents is, when it was told so, or when it comes too late.
    pub(crate) fn new(frame: &Arc<Frame>, outputs: &Arc<crate::output::Outputs>, new: NewStream<T>) -> Self {
        let inherited = new.parents.iter().find_map(|parent| parent.refusal().cloned());
        let refusal = inherited.or(new.refusal).or_else(|| frame.too_late(new.operation));
        let core = StreamCore {
            number: frame.next_number(),
            slide_ms: new.slide_ms,
            frame: Arc::clone(frame),
            parents: new.parents,
            role: new.role,
            compute: new.compute,
            generated: Mutex::default(),
            refusal,
        };
        Self { core: Arc::new(core), outputs: Arc::clone(outputs) }
    }

    /// A node with this one as its only parent, and its slide.
    pub(crate) fn derive<U: Data>(
        &self,
        operation: &'static str,
        work: impl Fn(Time, &Rdd<T>) -> Result<Rdd<U>, DStreamError> + Send + Sync + 'static,
    ) -> DStream<U> {
        let parent = Arc::clone(&self.core);
        let compute = move |time| parent.rows(time)?.map(|rows| work(time, &rows)).transpose();
        let new = NewStream {
            operation,
            slide_ms: self.core.slide_ms,
            parents: vec![self.any()],
            role: Role::Plain,
            refusal: None,
            compute: Box::new(compute),
        };
        DStream::new(&self.core.frame, &self.outputs, new)
    }

    /// A stream of this one and another; it has rows when both have.
    pub(crate) fn derive_with<W: Data, U: Data>(
        &self,
        operation: &'static str,
        other: &DStream<W>,
        work: impl Fn(Time, &Rdd<T>, &Rdd<W>) -> Result<Rdd<U>, DStreamError> + Send + Sync + 'static,
    ) -> DStream<U> {
        let (one, two) = (Arc::clone(&self.core), Arc::clone(&other.core));
        let refusal = cannot_combine(operation, &[(&one.frame, self.slide()), (&two.frame, other.slide())]);
        let new = NewStream {
            operation,
            slide_ms: self.slide(),
            parents: vec![self.any(), other.any()],
            role: Role::Plain,
            refusal,
            compute: Box::new(move |time| {
                let (Some(one), Some(two)) = (one.rows(time)?, two.rows(time)?) else { return Ok(None) };
                work(time, &one, &two).map(Some)
            }),
        };
        DStream::new(&self.core.frame, &self.outputs, new)
    }

    pub(crate) fn any(&self) -> Arc<dyn AnyStream> {
        Arc::clone(&self.core) as Arc<dyn AnyStream>
    }

    pub(crate) fn slide(&self) -> i64 {
        self.core.slide_ms
    }

    /// Every how long the stream has rows: the batch interval, unless a window said otherwise.
    pub fn slide_duration(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.core.slide_ms.unsigned_abs())
    }

    /// Names the state that this stream has, or the nearest stream before it that has state of its own. A checkpoint
    /// knows state by its name. Without one it is that of the operation, with a number from the second on.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let mut node = self.any();
        let refusal = loop {
            if let Role::Stateful(stateful) = node.role() {
                break stateful.identity().rename(name).err();
            }
            let [only] = node.parents() else {
                break Some(Refusal::NothingToName { name: name.to_owned() });
            };
            node = Arc::clone(only);
        };
        let refusal = refusal.or_else(|| self.core.frame.too_late("a name"));
        if refusal.is_none() {
            return self.clone();
        }
        self.refused("named", refusal)
    }

    /// This stream, refused.
    pub(crate) fn refused(&self, operation: &'static str, refusal: Option<Refusal>) -> Self {
        let new = NewStream {
            operation,
            slide_ms: self.core.slide_ms,
            parents: vec![self.any()],
            role: Role::Plain,
            refusal,
            compute: Box::new(|_| Ok(None)),
        };
        Self::new(&self.core.frame, &self.outputs, new)
    }

    /// What commits offsets of this stream, which is a direct one of Kafka, to its consumer group: Spark's `CanCommitOffsets`.
    /// The options of the stream name the group, by `kafka.group.id`.
    ///
    /// # Errors
    /// When the stream is made of another one.
    pub fn can_commit_offsets(&self) -> Result<CanCommitOffsets, DStreamError> {
        match &self.core.role {
            Role::Input(input) => Ok(CanCommitOffsets(Arc::clone(input))),
            _ => Err(Refusal::NotDirect.into()),
        }
    }

    /// The rows of the stream from one time to another, both included: of the batches whose rows are still remembered
    /// (see [`remember`](crate::StreamingContext::remember)), and of the present one.
    ///
    /// # Errors
    /// When an operation with state failed.
    pub fn slice(&self, from: Time, to: Time) -> Result<Vec<Rdd<T>>, DStreamError> {
        let Some(zero) = self.core.frame.zero() else { return Ok(Vec::new()) };
        let times = time::grid(zero, self.core.slide_ms, from, to);
        let rows = times.into_iter().map(|time| self.core.rows(time));
        rows.filter_map(Result::transpose).collect()
    }

    /// The rows of each batch are kept for all who use them; they always are. It is there for programs that ask.
    #[must_use]
    pub fn cache(&self) -> Self {
        self.clone()
    }
}

/// Why streams cannot be combined, if so.
pub(crate) fn cannot_combine(operation: &'static str, streams: &[(&Arc<Frame>, i64)]) -> Option<Refusal> {
    let Some((frame, slide_ms)) = streams.first() else { return Some(Refusal::NoStreams { operation }) };
    streams.iter().find_map(|(other_frame, other_ms)| {
        if !Arc::ptr_eq(frame, other_frame) {
            return Some(Refusal::Contexts { operation });
        }
        (other_ms != slide_ms).then_some(Refusal::Slides { operation, one_ms: *slide_ms, other_ms: *other_ms })
    })
}
