//! The relations that have no text: what stands in the syntax tree under a made name.
//!
//! Generators and stars stand for derived tables ([`super::generator`]); inputs are plans that are there already, the frames below the
//! step that is being planned. Both are set for one statement at a time.

use super::rewrite::{Derived, single_name};
use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::TableFactor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The relations of the statement that is being planned. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relations {
    current: Arc<Mutex<Current>>,
}

#[derive(Debug, Default)]
struct Current {
    derived: Vec<Derived>,
    inputs: Vec<LogicalPlan>,
}

impl Relations {
    /// Sets what the next statement has.
    pub(crate) fn set(&self, derived: Vec<Derived>, inputs: Vec<LogicalPlan>) {
        *self.lock() = Current { derived, inputs };
    }

    /// What derived table `index` stands for.
    pub(crate) fn derived(&self, index: usize) -> Option<Derived> {
        self.lock().derived.get(index).cloned()
    }

    fn input(&self, index: usize) -> Option<LogicalPlan> {
        self.lock().inputs.get(index).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name under which input `index` stands in FROM.
pub(crate) fn input_name(index: usize) -> String {
    format!("__input_{index}")
}

/// Puts inputs in the place of their names.
#[derive(Debug)]
pub(crate) struct InputPlanner {
    relations: Relations,
}

impl InputPlanner {
    /// A planner over the relations of each statement.
    pub(crate) fn new(relations: Relations) -> Self {
        Self { relations }
    }
}

impl RelationPlanner for InputPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let input = match &relation {
            TableFactor::Table { name, args: None, .. } => single_name(name)
                .and_then(|name| name.strip_prefix("__input_")?.parse().ok())
                .and_then(|index| self.relations.input(index)),
            _ => None,
        };
        match (input, relation) {
            (Some(plan), TableFactor::Table { alias, .. }) => {
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
            }
            (_, relation) => Ok(RelationPlanning::Original(Box::new(relation))),
        }
    }
}
