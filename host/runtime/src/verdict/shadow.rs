//! A candidate beside the running query: it sees the same live batches, on a fork, and what it gives reaches nobody.
//!
//! ```text
//!   source ──► batch N ──► running code ──► rows ──► sink
//!                 │                          │
//!                 └──► fork, candidate ──► rows ──► compared
//! ```
//! The running query shares its rows and waits for nothing; a candidate that cannot keep up is told so.

use super::dry_run::{EXAMPLES, SLOWER, compared};
use super::{Check, DryRun, Question, Verdict, VerdictFinding};
use crate::query::{Fork, ForkOptions, LiveBatch};
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::Checkpoint;
use millstream_common::{BatchId, describe_chain};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often the end of the query is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What runs in the shadow.
pub(crate) struct Shadow<'a> {
    pub(crate) session: &'a Session,
    pub(crate) spec: &'a QuerySpec,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) plugin: &'a str,
    pub(crate) component: &'a [u8],
    /// Whether the state has to be migrated for it.
    pub(crate) migrates: bool,
}

impl Shadow<'_> {
    /// Runs the candidate over so many live batches; `is_over` says whether none will come any more.
    ///
    /// # Errors
    /// When the query ends before it has done so many batches.
    pub(crate) fn run(
        &self,
        live: &Receiver<LiveBatch>,
        batches: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(DryRun, Vec<VerdictFinding>), RuntimeError> {
        let mut seen = DryRun::default();
        let mut changed: Vec<u64> = Vec::new();
        let mut fork: Option<Fork> = None;
        while (seen.batches.len() as u64) < batches {
            let batch = match live.recv_timeout(LOOK) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) if !is_over() => continue,
                Err(RecvTimeoutError::Disconnected) if !is_over() => {
                    let done = seen.batches.len();
                    let what =
                        format!("it cannot keep up with the running query: after {done} batches it was left behind");
                    return Ok((seen, vec![finding(Verdict::NeedsApproval, what)]));
                }
                Err(_) => {
                    let reason =
                        format!("the query ended after {} of {batches} batches in the shadow", seen.batches.len());
                    let hint = Some("start it again, or check the component with `millstream plugin check`".to_owned());
                    return Err(RuntimeError::Invalid { reason, hint });
                }
            };
            let number = batch.entry.batch.0;
            if let Some(last) = seen.batches.last().filter(|last| **last + 1 < number) {
                return Err(self.passed_over(BatchId(last + 1), seen.batches.len()));
            }
            let ran = match self.forked(&mut fork, &batch).and_then(|fork| fork.run_on(&batch)) {
                Ok(ran) => ran,
                Err(error) => {
                    let what = format!("it fails at live batch {number}: {}", describe_chain(&error));
                    return Ok((seen, vec![finding(Verdict::Reject, what)]));
                }
            };
            let changes = compared(&batch.ran, &ran)?;
            if let Some(column) = changes.columns.first() {
                return Ok((seen, vec![finding(Verdict::Reject, column.clone())]));
            }
            if changes.count > 0 {
                changed.push(number);
            }
            seen.batches.push(number);
            seen.rows_changed += changes.count;
            seen.rows_before += batch.ran.rows();
            seen.rows_after += ran.rows();
            seen.input_rows += batch.inputs.iter().flatten().map(|rows| rows.num_rows() as u64).sum::<u64>();
            seen.old_us += batch.ran.time_us(self.plugin);
            seen.new_us += ran.time_us(self.plugin);
            let room = EXAMPLES.saturating_sub(seen.examples.len());
            seen.examples.extend(changes.examples.into_iter().take(room));
        }
        let findings = judge(&mut seen, &changed);
        Ok((seen, findings))
    }

    /// Why the shadow cannot go on behind a batch that it was not shown: it only made state anew, for other code than the
    /// fork has.
    fn passed_over(&self, batch: BatchId, done: usize) -> RuntimeError {
        let border = self.checkpoint.offset_log().get(batch).ok().flatten().and_then(|entry| entry.border);
        let what = border.map_or_else(|| "it was not shown".to_owned(), |border| border.what);
        RuntimeError::Invalid {
            reason: format!(
                "the shadow ended after {done} batches, because other code took over in batch {batch}: {what}"
            ),
            hint: Some("try again: the component then runs beside the code that runs now".to_owned()),
        }
    }

    /// The fork; made when the first batch is there.
    fn forked<'f>(&self, fork: &'f mut Option<Fork>, first: &LiveBatch) -> Result<&'f mut Fork, RuntimeError> {
        if fork.is_none() {
            let components = BTreeMap::from([(self.plugin.to_owned(), self.component.to_vec())]);
            let options = ForkOptions { components, is_fed: true, ..ForkOptions::in_memory()? };
            if self.migrates {
                let (session, checkpoint, plugin) = (self.session, self.checkpoint, self.plugin);
                let question =
                    Question { session, checkpoint, spec: Some(self.spec), plugin, batches: 0, restores: false };
                question.migrate_before(&first.entry, self.component, &options.own)?;
            }
            let base = Arc::clone(self.checkpoint.files());
            *fork = Some(Fork::before(self.session, self.spec, base, first.entry.batch, options)?);
        }
        Ok(fork.as_mut().expect("it was just made"))
    }
}

fn judge(seen: &mut DryRun, changed: &[u64]) -> Vec<VerdictFinding> {
    let mut findings = Vec::new();
    if seen.rows_changed > 0 {
        let (rows, all) = (seen.rows_changed, seen.rows_before.max(seen.rows_after));
        let mut what = format!(
            "{rows} of {all} rows of live batches come out otherwise, in {} of {} batches",
            changed.len(),
            seen.batches.len()
        );
        if let Some(example) = seen.examples.first() {
            what.push_str(&format!(", such as {example}"));
        }
        findings.push(finding(Verdict::NeedsApproval, what));
    }
    if let Some(ratio) = seen.weigh()
        && ratio >= SLOWER
    {
        findings.push(finding(Verdict::NeedsApproval, format!("it takes {ratio:.1} times as long over live batches")));
    }
    findings
}

fn finding(verdict: Verdict, what: String) -> VerdictFinding {
    VerdictFinding { verdict, check: Check::Shadow, what }
}
