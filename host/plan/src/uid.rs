//! Stable names for stateful operators.
//!
//! The uid is `<scope>-<kind>`: the scope is the name of the nearest enclosing WITH clause or subquery alias, or
//! `query` for the outermost SELECT; the kind is `aggregate`, `session`, `limit`, … So an edit elsewhere in the query moves no
//! state, and two operators of one kind in one scope are refused: nothing would tell their state apart.

use crate::PlanError;
use millstream_common::OperatorUid;
use std::collections::{BTreeMap, BTreeSet};

/// The scope of the outermost SELECT.
pub(crate) const OUTERMOST: &str = "query";

/// Gives out uids and refuses the second of a kind.
#[derive(Debug)]
pub(crate) struct Uids<'a> {
    renamed: &'a BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl<'a> Uids<'a> {
    /// `renamed` are the uids that the user gave, by the uid that would be.
    pub(crate) fn new(renamed: &'a BTreeMap<String, String>) -> Self {
        Self { renamed, taken: BTreeSet::new() }
    }

    /// The uid of an operator of that kind in that scope.
    ///
    /// # Errors
    /// [`PlanError::AmbiguousUid`] for the second one.
    pub(crate) fn assign(&mut self, scope: &str, kind: &str) -> Result<OperatorUid, PlanError> {
        let clean: String =
            scope.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
        let natural = format!("{clean}-{kind}");
        let chosen = self.renamed.get(&natural).cloned().unwrap_or(natural);
        if !self.taken.insert(chosen.clone()) {
            return Err(PlanError::AmbiguousUid { uid: chosen });
        }
        OperatorUid::new(chosen).map_err(|error| PlanError::Sql { message: error.to_string() })
    }

    /// The uid of an operator that may stand in a query several times with the same rows and the same state, such as what
    /// belongs to a stream that is read twice: from the second one on they are numbered.
    ///
    /// # Errors
    /// As [`assign`](Self::assign).
    pub(crate) fn assign_numbered(&mut self, scope: &str, kind: &str) -> Result<OperatorUid, PlanError> {
        match self.assign(scope, kind) {
            Err(PlanError::AmbiguousUid { uid }) => (2..=u8::MAX)
                .find_map(|number| self.assign(&format!("{scope}-{number}"), kind).ok())
                .ok_or(PlanError::AmbiguousUid { uid }),
            assigned => assigned,
        }
    }

    /// Refuses renames that name no operator of the query.
    ///
    /// # Errors
    /// With the uids that exist.
    pub(crate) fn check_renames(&self) -> Result<(), PlanError> {
        for (natural, chosen) in self.renamed {
            if !self.taken.contains(chosen) {
                let known = self.taken.iter().cloned().collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "none".to_owned() } else { known };
                return Err(PlanError::Sql {
                    message: format!(
                        "uid `{natural}` is to be `{chosen}`, but the query has no such operator; it has {known}"
                    ),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_scope_and_the_second_of_a_kind_is_refused() {
        let renamed = BTreeMap::from([("hot-aggregate".to_owned(), "old-name".to_owned())]);
        let mut uids = Uids::new(&renamed);
        assert_eq!(uids.assign("query", "aggregate").unwrap().as_str(), "query-aggregate");
        assert_eq!(uids.assign("hot", "aggregate").unwrap().as_str(), "old-name");
        assert!(matches!(uids.assign("query", "aggregate"), Err(PlanError::AmbiguousUid { .. })));
        uids.check_renames().unwrap();
    }

    #[test]
    fn what_a_stream_has_of_its_own_is_numbered_when_it_is_read_again() {
        let renamed = BTreeMap::new();
        let mut uids = Uids::new(&renamed);
        let names = [(); 3].map(|()| uids.assign_numbered("events", "dedup").unwrap().to_string());
        assert_eq!(names, ["events-dedup", "events-2-dedup", "events-3-dedup"]);
    }
}
