//! Hot swap: another component takes a plugin's place at the border between two batches.
//!
//! ```text
//!   asked ──► checked (loaded, compared) ──► waits ──► border: stored in the checkpoint, put in place
//!                 │ refused: says why                     ──► next batch: its offset entry names the digest ──► taken
//! ```
//! A refused swap changes nothing. A crash before the offset entry: the old code goes on; after it: the new.

use super::border::Remake;
use super::canary::CanaryTerms;
use super::open::RunningPlugin;
use crate::RuntimeError;
use crate::migration::Beside;
use crate::verdict::VerdictReport;
use bytes::Bytes;
use millstream_checkpoint::{CanaryRecord, Checkpoint, SwapEntry, SwapRecord};
use millstream_common::{BatchId, Digest};
use millstream_wasm::Component;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A swap that took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapped {
    /// The first batch of the new component.
    pub batch: BatchId,
    /// The component that ran before.
    pub from: Digest,
    /// The component that runs now.
    pub to: Digest,
    /// How long the query stood still for it.
    pub pause: SwapPause,
}

/// How long a query stood still for a swap, beside its batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapPause {
    /// Putting the code in place; where state is made anew also planning.
    pub code: Duration,
    /// Making state anew, as far as it was not made beside the query.
    pub state: Duration,
    /// Opening the state.
    pub open: Duration,
    /// Defining and ending the border in the logs; without a border of its own the next batch does that.
    pub log: Duration,
}

impl SwapPause {
    /// All of it.
    pub fn whole(&self) -> Duration {
        self.code + self.state + self.open + self.log
    }
}

/// Who wanted a swap, and what was said of it before: what the swap log keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapGrounds {
    /// `swap`, `rollback`, `restart`.
    pub by: String,
    /// The verdict, in words.
    pub verdict: String,
    /// Whether a person approved of it.
    pub approved: bool,
    /// What was held against it.
    pub findings: Vec<String>,
}

impl SwapGrounds {
    /// Grounds of a swap that nobody was asked about.
    pub fn unasked(by: &str) -> Self {
        Self { by: by.to_owned(), verdict: "not asked".to_owned(), approved: false, findings: Vec::new() }
    }

    /// Grounds by a verdict.
    pub fn of(by: &str, report: &VerdictReport, approved: bool) -> Self {
        Self {
            by: by.to_owned(),
            verdict: report.verdict.to_string(),
            approved,
            findings: report.findings.iter().map(|finding| finding.what.clone()).collect(),
        }
    }
}

/// A checked swap on its way to the border.
pub struct SwapRequest {
    pub(super) plugin: String,
    pub(super) component: Arc<Component>,
    pub(super) bytes: Vec<u8>,
    pub(super) grounds: SwapGrounds,
    /// What is made of the state; `None` when it stays as it is.
    pub(super) remake: Option<Remake>,
    /// Of which share of the keys, if it is to be a canary first.
    pub(super) canary: Option<CanaryTerms>,
    /// The state, if it was migrated beside the query.
    pub(super) beside: Option<Beside>,
    /// Keeps what that has still to take up.
    pub(super) hold: Option<Hold>,
    pub(super) reply: Sender<Result<Swapped, String>>,
}

impl SwapRequest {
    /// For a component whose state stays as it is, and which is to compute all keys.
    pub(super) fn new(
        plugin: String,
        (component, bytes): (Arc<Component>, Vec<u8>),
        grounds: SwapGrounds,
        reply: Sender<Result<Swapped, String>>,
    ) -> Self {
        Self { plugin, component, bytes, grounds, remake: None, canary: None, beside: None, hold: None, reply }
    }

    /// Says that it does not take place.
    pub(super) fn refuse(&self, reason: String) {
        answer(&self.reply, Err(reason));
    }
}

/// The canary of a plugin is to end.
pub(super) struct EndRequest {
    pub(super) plugin: String,
    pub(super) reply: Sender<Result<Swapped, String>>,
}

impl EndRequest {
    /// Says that there is no canary to end.
    pub(super) fn refuse(&self) {
        answer(&self.reply, Err(format!("plugin `{}` has no canary", self.plugin)));
    }
}

/// The swaps that wait for the next border.
#[derive(Clone, Default)]
pub(super) struct SwapQueue(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<SwapRequest>,
    /// Plugins whose canary is to end.
    ends: Vec<EndRequest>,
    /// Swaps that were refused before they got here: plugin and reason, for its progress.
    refused: Vec<(String, String)>,
    /// Why no border comes any more.
    closed: Option<String>,
    /// The oldest batches that somebody beside the query still reads.
    held: Vec<BatchId>,
}

/// Keeps a batch and all after it from being cleaned up, until it is dropped.
pub(super) struct Hold {
    queue: SwapQueue,
    batch: BatchId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        if let Some(at) = waiting.held.iter().position(|held| *held == self.batch) {
            waiting.held.swap_remove(at);
        }
    }
}

impl SwapQueue {
    /// Adds one; answers it at once when the query is over.
    pub(super) fn push(&self, request: SwapRequest) {
        let mut waiting = self.lock();
        match &waiting.closed {
            None => waiting.requests.push_back(request),
            Some(reason) => answer(&request.reply, Err(reason.clone())),
        }
    }

    /// Ends the canary of a plugin at the next border.
    pub(super) fn end_canary(&self, request: EndRequest) {
        let mut waiting = self.lock();
        match &waiting.closed {
            None => waiting.ends.push(request),
            Some(reason) => answer(&request.reply, Err(reason.clone())),
        }
    }

    /// The canaries that are to end.
    pub(super) fn take_ends(&self) -> Vec<EndRequest> {
        std::mem::take(&mut self.lock().ends)
    }

    /// Keeps a batch and all after it from being cleaned up.
    pub(super) fn hold(&self, batch: BatchId) -> Hold {
        self.lock().held.push(batch);
        Hold { queue: self.clone(), batch }
    }

    /// The oldest batch that somebody beside the query still reads.
    pub(super) fn held(&self) -> Option<BatchId> {
        self.lock().held.iter().min().copied()
    }

    /// Takes note that a swap was refused before it got here.
    pub(super) fn refused(&self, plugin: &str, reason: &str) {
        self.lock().refused.push((plugin.to_owned(), reason.to_owned()));
    }

    /// The swaps that wait. Refusals that came meanwhile are told to the plugins.
    pub(super) fn take_waiting(&self, plugins: &mut [RunningPlugin]) -> VecDeque<SwapRequest> {
        for (name, reason) in std::mem::take(&mut self.lock().refused) {
            if let Some(plugin) = plugins.iter_mut().find(|plugin| plugin.slot.name() == name) {
                plugin.swap_refused = Some(reason);
            }
        }
        self.take_all()
    }

    fn take_all(&self) -> VecDeque<SwapRequest> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Answers everybody who still waits, and everybody who asks from now on: the query is over.
    pub(super) fn close(&self, reason: &str) {
        self.lock().closed = Some(reason.to_owned());
        for request in self.take_all() {
            answer(&request.reply, Err(reason.to_owned()));
        }
        for request in self.take_ends() {
            answer(&request.reply, Err(reason.to_owned()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A swap that is in place and is told of once the offset log names it.
pub(super) struct Unlogged {
    plugin: String,
    from: Digest,
    to: Digest,
    grounds: SwapGrounds,
    /// What became of the state, when it did not simply stay.
    state: Option<String>,
    pause: SwapPause,
    reply: Option<Sender<Result<Swapped, String>>>,
    /// Whether all keys change their code; the log of swaps tells the rest otherwise.
    is_swap: bool,
}

impl Unlogged {
    /// A component that takes another's place and keeps its state; nobody waits for the answer.
    fn of(plugin: String, (from, to): (Digest, Digest), grounds: SwapGrounds) -> Self {
        Self { plugin, from, to, grounds, state: None, pause: SwapPause::default(), reply: None, is_swap: true }
    }

    /// As somebody asked for it.
    fn asked(request: &SwapRequest, from: Digest) -> Self {
        let digests = (from, request.component.digest());
        let reply = Some(request.reply.clone());
        Self { reply, ..Self::of(request.plugin.clone(), digests, request.grounds.clone()) }
    }

    /// A component that took another's place because the query file names it.
    pub(super) fn by_restart(plugin: &str, from: Digest, to: Digest, grounds: SwapGrounds) -> Self {
        Self::of(plugin.to_owned(), (from, to), grounds)
    }

    /// A component that takes over because its canary has shown enough.
    pub(super) fn by_canary(plugin: &str, from: Digest, to: Digest, shown: String) -> Self {
        let verdict = "its canary has shown enough".to_owned();
        let grounds = SwapGrounds { by: "canary".to_owned(), verdict, approved: false, findings: vec![shown] };
        Self::of(plugin.to_owned(), (from, to), grounds)
    }

    /// A component that computes a slice of the keys.
    pub(super) fn of_canary(request: &SwapRequest, from: Digest) -> Self {
        Self { is_swap: false, ..Self::asked(request, from) }
    }

    /// The canary of a plugin that ends because somebody asked for that.
    pub(super) fn end_of_canary(request: EndRequest, (candidate, current): (Digest, Digest)) -> Self {
        let EndRequest { plugin, reply } = request;
        let ended = Self::of(plugin, (candidate, current), SwapGrounds::unasked("rollback"));
        Self { reply: Some(reply), is_swap: false, ..ended }
    }

    /// A component that takes over at a border of its own.
    pub(super) fn at_border(request: &SwapRequest, from: Digest, state: &str) -> Self {
        Self { state: Some(state.to_owned()), ..Self::asked(request, from) }
    }

    /// Takes note of how long the query stood still.
    pub(super) fn after(mut self, pause: SwapPause) -> Self {
        self.pause = pause;
        self
    }

    /// The offset entry of `batch` names the digest.
    pub(super) fn logged(self, batch: BatchId) {
        if let Some(reply) = &self.reply {
            answer(reply, Ok(Swapped { batch, from: self.from, to: self.to, pause: self.pause }));
        }
    }
}

/// What the swap log says of swaps before a batch; `None` without any.
pub(super) fn log_entry(
    unlogged: &[Unlogged],
    canaries: &[(String, CanaryRecord)],
    batch: BatchId,
    time_ms: i64,
) -> Option<SwapEntry> {
    let mut swaps: BTreeMap<String, SwapRecord> = BTreeMap::new();
    for swap in unlogged.iter().filter(|swap| swap.is_swap) {
        let SwapGrounds { by, verdict, approved, findings } = swap.grounds.clone();
        // Of several at one border only the way from the first to the last can be seen in the offset log.
        let from = swaps.get(&swap.plugin).map_or(swap.from, |earlier| earlier.from);
        let record = SwapRecord { from, to: swap.to, by, verdict, approved, findings, state: swap.state.clone() };
        swaps.insert(swap.plugin.clone(), record);
    }
    let canaries: BTreeMap<String, CanaryRecord> = canaries.iter().cloned().collect();
    (!swaps.is_empty() || !canaries.is_empty()).then_some(SwapEntry { batch, time_ms, swaps, canaries })
}

/// Puts a component in place whose state is the old one's; between batches only. `Err` says why it could not be, and the
/// old one goes on.
pub(super) fn put_in_place(
    plugins: &mut [RunningPlugin],
    checkpoint: &Checkpoint,
    request: &SwapRequest,
) -> Result<Unlogged, String> {
    let Some(plugin) = plugins.iter().find(|plugin| plugin.slot.name() == request.plugin) else {
        return Err(format!("the query has no plugin `{}`", request.plugin));
    };
    let began = Instant::now();
    let (from, to) = (plugin.slot.digest(), request.component.digest());
    let put = || -> Result<(), RuntimeError> {
        plugin.slot.check_swap(&request.component)?;
        checkpoint.plugins().put(&to, Bytes::copy_from_slice(&request.bytes))?;
        Ok(plugin.slot.swap(Arc::clone(&request.component))?)
    };
    put().map_err(|error| millstream_common::describe_chain(&error))?;
    tracing::info!(plugin = %request.plugin, from = %from.short(), to = %to.short(), "swapped");
    let pause = SwapPause { code: began.elapsed(), ..SwapPause::default() };
    Ok(Unlogged::asked(request, from).after(pause))
}

fn answer(reply: &Sender<Result<Swapped, String>>, answer: Result<Swapped, String>) {
    if reply.send(answer).is_err() {
        tracing::debug!("nobody waits for the answer to a swap any more");
    }
}
