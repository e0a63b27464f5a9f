//! Queries as trees of operations: what the methods of a `DataFrame` build (Spark's `Dataset`).
//!
//! ```text
//!   stream "lines" ──► select ──► group by ──► agg          each step: a small statement over the plan below it
//!                                                           (the same parser, rewrites and planner as SQL text)
//! ```
//!
//! A [`Frame`] is made by a [`FramePlanner`], which plans each operation at once, so that a name that is not there is refused
//! where it was written. When a query starts, its tree is planned anew in the session of that run: from there on it is a query
//! like any other, with the same checks, rules, operators and uids as the same query in SQL.
//!
//! Names for uids: a view or an [alias](Operation::Alias) is a scope as a WITH clause is; `drop_duplicates` directly on a stream
//! has the name of the stream.
//!
//! Rule of its life: immutable; operations share what is below them. It holds no rows and opens nothing.

mod aggregate;
mod column;
pub mod functions;
mod join;
mod literal;
mod map;
mod operation;
mod planner;
mod process;
mod select;
mod step;
mod window_column;

pub use column::Column;
pub use literal::IntoOperand;
pub(crate) use map::MapNode;
pub use operation::{JoinKind, JoinOn, Operation, ProcessCall};
pub use planner::{FramePlanner, relations_of};

use crate::front::Front;
use crate::{PlanError, StaticTable};
use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use std::fmt;
use std::sync::Arc;

/// How many operations may stand above each other: planning them takes stack.
const DEPTH_MAX: usize = 100;
/// How many operations a tree may have, those that are used twice counted twice.
const SIZE_MAX: usize = 1000;

/// A tree of operations. Clones share it.
#[derive(Clone)]
pub struct Frame {
    node: Arc<FrameNode>,
}

struct FrameNode {
    operation: Operation,
    inputs: Vec<Frame>,
    depth: usize,
    size: usize,
    /// As it is written.
    written: LogicalPlan,
    /// With its types settled.
    analyzed: LogicalPlan,
}

impl Frame {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        let fields = self.node.analyzed.schema().fields().iter();
        let plain: Vec<_> = fields.map(|field| Arc::new(crate::event_time::unmark(field))).collect();
        Arc::new(arrow::datatypes::Schema::new(plain))
    }

    /// Whether rows of a stream are in it.
    pub fn is_streaming(&self) -> bool {
        crate::lower::has_stream(&self.node.written)
    }

    /// The logical plan, for people.
    pub fn explain(&self) -> String {
        self.node.analyzed.display_indent().to_string()
    }

    /// The operation on top.
    pub fn operation(&self) -> &Operation {
        &self.node.operation
    }

    /// The frames that it works on.
    pub fn inputs(&self) -> &[Frame] {
        &self.node.inputs
    }

    /// The plan as it is written, made anew in the session of `front`, with the rows of `tables`.
    pub(crate) fn plan(&self, front: &mut Front, tables: &[StaticTable]) -> Result<LogicalPlan, PlanError> {
        let inputs = self.node.inputs.iter().map(|input| input.plan(front, tables)).collect::<Result<_, _>>()?;
        step::plan(&self.node.operation, inputs, front, tables)
    }

    pub(crate) fn written(&self) -> &LogicalPlan {
        &self.node.written
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("operation", &self.node.operation).field("inputs", &self.node.inputs).finish()
    }
}
