//! One upgrade and what must be said of it.

use crate::{Query, Stage};
use anyhow::{Context, Result, ensure};
use millstream_runtime::verdict::{Verdict, VerdictReport};

/// What must be said.
#[derive(Debug, Clone)]
pub enum Expected {
    /// It may take over, and nothing is held against it.
    Good,
    /// It may take over after a migration, of which these words are said.
    Migrates(&'static [&'static str]),
    /// A person must want it; the findings have these words.
    Held(&'static [&'static str]),
    /// It may not take over; the findings have these words.
    Refused(&'static [&'static str]),
}

/// An upgrade.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The query that would get it.
    pub query: Query,
    /// The candidate.
    pub component: Vec<u8>,
    /// What must be said.
    pub expected: Expected,
}

impl Case {
    /// Asks for the verdict, and says whether it is as expected.
    ///
    /// # Errors
    /// When it is not, with the whole verdict.
    pub fn check(&self, stage: &Stage) -> Result<VerdictReport> {
        let report = stage.verdict(self.query, &self.component).with_context(|| self.name.clone())?;
        let (verdict, words): (Verdict, &[&str]) = match &self.expected {
            Expected::Good => (Verdict::Ok, &[]),
            Expected::Migrates(words) => (Verdict::OkAfterMigration, words),
            Expected::Held(words) => (Verdict::NeedsApproval, words),
            Expected::Refused(words) => (Verdict::Reject, words),
        };
        ensure!(report.verdict == verdict, "{}: {verdict} was expected\n{report}", self.name);
        let reasons = format!("{}{}", report.reasons(), report.migration.concat());
        for word in words {
            ensure!(reasons.contains(word), "{}: `{word}` is missing in {reasons}\n{report}", self.name);
        }
        ensure!(!words.is_empty() || reasons.is_empty(), "{}: {reasons}", self.name);
        Ok(report)
    }
}
