//! A query as a tree of operators, and the way of rows through it.

use crate::late::LateRows;
use crate::{BatchContext, EventTimeSeen, Operator, OperatorError, Stateful};
use arrow::array::RecordBatch;
use millstream_common::{Watermark, Watermarks};
use millstream_state::StateError;
use std::convert::Infallible;

/// A node of the tree.
pub enum Node {
    /// Rows of a source enter here; the number is the index into the inputs of [`Pipeline::run`].
    Slot(usize),
    /// An operator and its inputs, port by port.
    Operator {
        /// The step.
        operator: Box<dyn Operator>,
        /// Where its rows come from.
        inputs: Vec<Node>,
    },
}

/// A query as a tree of operators; the root's rows go to the sink.
pub struct Pipeline {
    root: Node,
}

impl Pipeline {
    /// A pipeline that ends in `root`.
    pub fn new(root: Node) -> Self {
        Self { root }
    }

    /// Runs one batch: every batch of rows goes through the tree as far as it can before the next one is taken,
    /// then the barrier passes from the leaves up. `inputs[slot]` are the batches of that slot; all of them are
    /// taken. When an operator fails, the batch is aborted in all of them.
    ///
    /// # Errors
    /// The first error of an operator.
    pub fn run(
        &mut self,
        inputs: &mut [Vec<RecordBatch>],
        context: &BatchContext,
    ) -> Result<Vec<RecordBatch>, OperatorError> {
        // What an aborted attempt at the batch saw does not count.
        self.take_event_times();
        self.take_late_rows();
        let mut out = Vec::new();
        let result = drive(&mut self.root, inputs, (context, context), &mut |rows| {
            out.push(rows);
            Ok(())
        });
        inputs.iter_mut().for_each(Vec::clear);
        match result {
            Ok(()) => Ok(out),
            Err(error) => {
                self.abort();
                Err(error)
            }
        }
    }

    /// Forgets the batch in every operator: gathered rows, event times seen, changes of state.
    pub fn abort(&mut self) {
        let done: Result<(), Infallible> = visit_operators(&mut self.root, &mut |operator| {
            operator.abort();
            if let Some(state) = operator.stateful() {
                state.abort();
            }
            Ok(())
        });
        match done {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// The stateful operators, the one nearest the sink first (Spark's order).
    pub fn for_each_stateful<E>(&mut self, mut visit: impl FnMut(&mut dyn Stateful) -> Result<(), E>) -> Result<(), E> {
        visit_operators(&mut self.root, &mut |operator| operator.stateful().map_or(Ok(()), &mut visit))
    }

    /// Whether a batch without rows would change the result, now that the query's watermark moved from `old` to
    /// `new`: each stateful operator is asked about the watermark of its own input.
    pub fn wants_no_data_batch(&mut self, old: Watermark, new: Watermark) -> bool {
        wants_no_data_batch(&mut self.root, old, new)
    }

    /// Whether a batch without rows would change the result at that time, in milliseconds, whatever the watermark.
    ///
    /// # Errors
    /// When state cannot be read.
    pub fn is_due(&mut self, now_ms: i64) -> Result<bool, StateError> {
        let mut due = false;
        self.for_each_stateful(|state| {
            due = due || state.is_due(now_ms)?;
            Ok::<(), StateError>(())
        })?;
        Ok(due)
    }

    /// What the watermark operators saw in the batch that just ran.
    pub fn take_event_times(&mut self) -> Vec<EventTimeSeen> {
        let mut seen = Vec::new();
        let taken: Result<(), Infallible> = visit_operators(&mut self.root, &mut |operator| {
            seen.extend(operator.take_event_time());
            Ok(())
        });
        match taken {
            Ok(()) => seen,
            Err(never) => match never {},
        }
    }

    /// The late rows that were taken out of the batch that just ran, per operator that they were late for.
    pub fn take_late_rows(&mut self) -> Vec<LateRows> {
        let mut late = Vec::new();
        let taken: Result<(), Infallible> = visit_operators(&mut self.root, &mut |operator| {
            late.extend(operator.take_late_rows());
            Ok(())
        });
        match taken {
            Ok(()) => late,
            Err(never) => match never {},
        }
    }

    /// The tree as indented lines, the sink's side first.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        describe_node(&self.root, 0, &mut text);
        text
    }
}

/// Where the rows of a node go.
type Next<'a> = dyn FnMut(RecordBatch) -> Result<(), OperatorError> + 'a;

/// Pushes all rows of the tree below `node`, and the barrier, into `next`. The contexts are the query's, and that of
/// the operator above.
fn drive(
    node: &mut Node,
    inputs: &[Vec<RecordBatch>],
    (context, above): (&BatchContext, &BatchContext),
    next: &mut Next<'_>,
) -> Result<(), OperatorError> {
    match node {
        Node::Slot(slot) => {
            let rows = inputs.get(*slot).ok_or_else(|| OperatorError::Misfit {
                operator: format!("Source #{slot}"),
                reason: format!("the batch has rows of {} sources only", inputs.len()),
            })?;
            // Two slots of a tree may read the same source, so rows are shared, not moved.
            rows.iter().cloned().try_for_each(next)
        }
        Node::Operator { operator, inputs: children } => {
            let mut out = Vec::new();
            let own = match operator.judges_for_above() {
                true => *above,
                false => BatchContext { watermarks: input_watermarks(children, context), ..*context },
            };
            for (port, child) in children.iter_mut().enumerate() {
                drive(child, inputs, (context, &own), &mut |rows| {
                    operator.push(port, &rows, &own, &mut out)?;
                    out.drain(..).try_for_each(&mut *next)
                })?;
            }
            operator.barrier(&own, &mut out)?;
            out.drain(..).try_for_each(next)
        }
    }
}

/// The watermarks of what comes out of `inputs`; the query's are in `context`.
fn input_watermarks(inputs: &[Node], context: &BatchContext) -> Option<Watermarks> {
    let global = context.watermarks?;
    let late = least_watermark(inputs, global.late)?;
    let eviction = least_watermark(inputs, global.eviction)?;
    Some(Watermarks { late, eviction })
}

/// The least watermark of what comes out of `inputs`; inputs without one hold nothing back.
fn least_watermark(inputs: &[Node], global: Watermark) -> Option<Watermark> {
    let of = |node: &Node| match node {
        Node::Slot(_) => None,
        Node::Operator { operator, inputs } => operator.output_watermark(least_watermark(inputs, global), global),
    };
    inputs.iter().filter_map(of).min()
}

fn wants_no_data_batch(node: &mut Node, old: Watermark, new: Watermark) -> bool {
    let Node::Operator { operator, inputs } = node else { return false };
    let moved = least_watermark(inputs, old).zip(least_watermark(inputs, new));
    let wants = moved.zip(operator.stateful()).is_some_and(|((old, new), state)| state.wants_no_data_batch(old, new));
    wants || inputs.iter_mut().any(|input| wants_no_data_batch(input, old, new))
}

fn visit_operators<E>(node: &mut Node, visit: &mut dyn FnMut(&mut dyn Operator) -> Result<(), E>) -> Result<(), E> {
    if let Node::Operator { operator, inputs } = node {
        visit(operator.as_mut())?;
        for input in inputs {
            visit_operators(input, visit)?;
        }
    }
    Ok(())
}

fn describe_node(node: &Node, depth: usize, text: &mut String) {
    text.push_str(&"  ".repeat(depth));
    match node {
        Node::Slot(slot) => text.push_str(&format!("Source #{slot}\n")),
        Node::Operator { operator, inputs } => {
            text.push_str(&operator.describe());
            text.push('\n');
            for input in inputs {
                describe_node(input, depth + 1, text);
            }
        }
    }
}
