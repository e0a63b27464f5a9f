//! May other code take a plugin's place? One answer, before anything happens, with its reasons.
//!
//! ```text
//!   candidate ──► structure     functions that the query calls, permissions            ┐
//!             ──► declaration   what state means, against what is stored; migration    ├─► findings ─► the gravest
//!             ──► dry run       last batches again on a fork of the checkpoint         ┘              is the verdict
//! ```
//!
//! Beside the loop. `plugin check`, `swap`, `rollback`, and a start whose query file names other code ask here, and get
//! the same answer; what follows from it is theirs: `needs approval` waits for `--approve` at a swap, and is said and
//! goes on at a start, because whoever edits the query file has approved.
//!
//! Rule of its life: nothing is changed, the running query is not held up, and every finding names what and where.

mod candidate;
mod declaration;
mod dry_run;
mod permissions;
mod rows;
mod shadow;
mod text;

pub(crate) use candidate::{Question, judge, resume_point};
pub use candidate::{VerdictRequest, check_component};
pub use dry_run::{DryRun, FailingRow};
pub use permissions::{Granted, PermissionChange};
pub(crate) use shadow::Shadow;

use serde::{Deserialize, Serialize};
use std::fmt;

/// What follows from all findings; later ones are graver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It can take over.
    Ok,
    /// It can take over when the stored state has been migrated, which is possible.
    OkAfterMigration,
    /// It can take over when a person wants what the findings say.
    NeedsApproval,
    /// It cannot take over.
    Reject,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::OkAfterMigration => "ok after migration",
            Self::NeedsApproval => "needs approval",
            Self::Reject => "reject",
        })
    }
}

/// Which of the checks found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Functions, types, permissions.
    Structure,
    /// What state means.
    Declaration,
    /// Running the last batches again.
    DryRun,
    /// Running it beside the query.
    Shadow,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictFinding {
    /// What follows from it alone.
    pub verdict: Verdict,
    /// Which check found it.
    pub check: Check,
    /// What and where, in a sentence without a stop.
    pub what: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictReport {
    /// What follows from all findings.
    pub verdict: Verdict,
    /// The plugin's name in the query.
    pub plugin: String,
    /// The component that runs, or ran last; `None` when no batch has run one.
    pub from: Option<String>,
    /// The candidate.
    pub to: String,
    /// The functions that the query calls; those of the whole component when the query was not named.
    pub used: Vec<String>,
    /// What the running code and the candidate ask for beyond computing; `None` when the candidate is no component.
    #[serde(default)]
    pub permissions: Option<Vec<PermissionChange>>,
    /// What was found, the gravest first.
    pub findings: Vec<VerdictFinding>,
    /// The steps that the state would take, in words.
    pub migration: Vec<String>,
    /// Whether the state is made again by the candidate, from before it last stopped.
    pub restores: bool,
    /// What the dry run showed; `None` when there was none.
    pub dry_run: Option<DryRun>,
    /// What running it beside the query showed; `None` when it did not.
    pub shadow: Option<DryRun>,
    /// What could not be looked at, and why.
    pub notes: Vec<String>,
}

impl VerdictReport {
    /// Adds what running the candidate beside the query showed.
    pub(crate) fn add_shadow(&mut self, seen: DryRun, findings: Vec<VerdictFinding>) {
        self.shadow = Some(seen);
        self.findings.extend(findings);
        self.settle();
    }

    /// Puts the findings in order; the gravest is the verdict.
    pub(crate) fn settle(&mut self) {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        self.verdict = gravest(&self.findings);
    }

    /// The candidate as people write it: the first twelve digits.
    pub fn candidate(&self) -> &str {
        self.to.get(..12).unwrap_or(&self.to)
    }

    /// Whether nothing but what is stored forbids it.
    pub fn is_rejected_for_its_state(&self) -> bool {
        let mut rejected = self.findings.iter().filter(|finding| finding.verdict == Verdict::Reject).peekable();
        rejected.peek().is_some() && rejected.all(|finding| finding.check == Check::Declaration)
    }

    /// The findings in one line.
    pub fn reasons(&self) -> String {
        self.findings.iter().map(|finding| finding.what.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Whether it may take over, given that a person has approved or not.
    pub fn admits(&self, approved: bool) -> bool {
        match self.verdict {
            Verdict::Ok | Verdict::OkAfterMigration => true,
            Verdict::NeedsApproval => approved,
            Verdict::Reject => false,
        }
    }
}

/// The gravest of the findings; `ok` without any.
pub(crate) fn gravest(findings: &[VerdictFinding]) -> Verdict {
    findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_finding_is_the_verdict() {
        let finding = |verdict| VerdictFinding { verdict, check: Check::Structure, what: "it".into() };
        assert_eq!(gravest(&[]), Verdict::Ok);
        let findings = [Verdict::OkAfterMigration, Verdict::NeedsApproval].map(finding);
        assert_eq!(gravest(&findings), Verdict::NeedsApproval);
        assert_eq!(gravest(&[Verdict::Reject, Verdict::Ok].map(finding)), Verdict::Reject);
        assert_eq!(serde_json::to_string(&Verdict::OkAfterMigration).unwrap(), "\"ok-after-migration\"");
    }
}
