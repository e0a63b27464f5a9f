//! A source of a plugin, as one stream of a query uses it: offsets, and rows page by page.
//!
//! Each call takes whatever component the slot has then. A call that fails gives an error and nothing else: there are no
//! rows yet that could be skipped or kept, so the policy of the slot says nothing here.
//!
//! Rule of its life: what a call answers depends on its arguments, the options of the stream, and the world; random
//! numbers follow from batch, stream and page, whatever else the plugin did in the batch.
//!
//! It knows no order of offsets and keeps none.

use arrow::array::RecordBatch;
use millstream_common::Digest;
use std::sync::Arc;

use super::caller::Caller;
use super::code::{Request, Role};
use super::{PluginSlot, columns, locked};
use crate::error::WasmError;
use crate::export::Export;
use crate::signature::SourceSignature;
use crate::stamp::CallStamp;
use crate::wire::source::{CommitOffset, InitialOffset, LatestOffset, LimitsRef, Page, ReadPage};

/// Bytes that an offset or a cursor may have.
const TEXT: usize = 64 << 10;

/// Some rows of a range.
#[derive(Debug, Clone)]
pub struct SourcePage {
    /// The rows, with the columns of [`SourceSignature::schema`].
    pub rows: RecordBatch,
    /// The cursor of the next page; `None` when this is the last.
    pub next: Option<String>,
}

/// A source of a plugin, for one stream.
#[derive(Debug, Clone)]
pub struct SourceCalls {
    slot: Arc<PluginSlot>,
    source: String,
    /// As the source's own description names them.
    options: Vec<(String, String)>,
    /// A number that says which stream it is, for random numbers.
    stream: u64,
}

/// What is asked of a source.
#[derive(Debug, Clone, Copy)]
enum Step {
    InitialOffset,
    LatestOffset,
    Read,
    Commit,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::InitialOffset => "initial-offset",
            Self::LatestOffset => "latest-offset",
            Self::Read => "read",
            Self::Commit => "commit",
        }
    }
}

impl SourceCalls {
    /// The source `source` of the plugin in `slot`, for the stream `stream` with these options.
    pub fn new(slot: Arc<PluginSlot>, source: &str, stream: &str, options: Vec<(String, String)>) -> Self {
        let digest = Digest::of(stream.as_bytes()).into_bytes();
        let stream = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self { slot, source: source.to_owned(), options, stream }
    }

    /// The plugin.
    pub fn slot(&self) -> &Arc<PluginSlot> {
        &self.slot
    }

    /// The source's name.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Where a query begins that has read nothing yet.
    ///
    /// # Errors
    ///
    /// What the guest says, or how it failed.
    pub fn initial_offset(&self) -> Result<String, WasmError> {
        self.call::<InitialOffset, _>(
            (Step::InitialOffset, 0),
            |number| (number, &*self.options),
            |_, offset| text("offset", offset),
        )
    }

    /// The end of a batch that begins at `start`, not beyond `until`, and after about so many rows.
    ///
    /// # Errors
    ///
    /// As [`Self::initial_offset`].
    pub fn latest_offset(&self, start: &str, until: Option<&str>, max_rows: Option<u64>) -> Result<String, WasmError> {
        let params = |number| (number, &*self.options, start, LimitsRef { until, max_rows });
        self.call::<LatestOffset, _>((Step::LatestOffset, 0), params, |_, offset| text("offset", offset))
    }

    /// Page number `page` of the rows after `start` up to `end`, which begins at the cursor.
    ///
    /// # Errors
    ///
    /// As [`Self::initial_offset`].
    pub fn read(&self, (start, end): (&str, &str), cursor: Option<&str>, page: u64) -> Result<SourcePage, WasmError> {
        let read = self.call::<ReadPage, _>(
            (Step::Read, page),
            |number| (number, &*self.options, start, end, cursor),
            checked,
        )?;
        locked(&self.slot.metrics).output_rows += read.rows.num_rows() as u64;
        Ok(read)
    }

    /// The query has what comes before `offset`.
    ///
    /// # Errors
    ///
    /// As [`Self::initial_offset`].
    pub fn commit(&self, offset: &str) -> Result<(), WasmError> {
        self.call::<CommitOffset, _>((Step::Commit, 0), |number| (number, &*self.options, offset), |_, ()| Ok(()))
    }

    fn call<'p, E: Export, T>(
        &self,
        (step, page): (Step, u64),
        params: impl FnOnce(u32) -> E::Params<'p>,
        check: impl Fn(&SourceSignature, E::Output) -> Result<T, String>,
    ) -> Result<T, WasmError> {
        let function = format!("{}.{}", self.source, step.name());
        // A source has no keys: a canary has no say in it.
        let request = self.request(step, page);
        let found = request.component().source(&self.source);
        let (number, signature) =
            found.ok_or_else(|| self.slot.bad_call(&function, "the component has no such source".into()))?;
        let mut caller = Caller::new(&self.slot, &request);
        let result = caller.call::<E, T>(params(number), |output| check(signature, output));
        caller.end(0, 0, 0);
        result.map_err(|failure| failure.into_error(self.slot.name(), &function))
    }
}

impl SourceCalls {
    fn request(&self, step: Step, page: u64) -> Request {
        let batch = locked(&self.slot.stamps).batch;
        // Apart from the numbers that functions count, which must not depend on how often a source was asked.
        let invocation = 1 << 63 | (step as u64) << 48 | page;
        let stamp = CallStamp { batch, partition: 0, invocation, row: self.stream };
        Request { code: self.slot.code(), stamp, role: Role::Answer, canary: None }
    }
}

/// A guest's offset or cursor.
fn text(what: &str, text: String) -> Result<String, String> {
    if text.len() > TEXT {
        return Err(format!("the {what} has {} bytes, more than {TEXT}", text.len()));
    }
    Ok(text)
}

fn checked(signature: &SourceSignature, page: Page) -> Result<SourcePage, String> {
    let next = page.next.map(|next| text("cursor", next)).transpose()?;
    let rows = page.rows.rows as usize;
    let decoded = columns::decoded(&signature.columns, page.rows, rows)?;
    let rows = RecordBatch::try_new(signature.schema(), decoded).map_err(|error| error.to_string())?;
    Ok(SourcePage { rows, next })
}
