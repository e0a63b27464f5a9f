//! A processor as a node of the logical plan.

use super::known::KnownProcessor;
use crate::lower::has_stream;
use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use millstream_common::OutputMode;
use millstream_wasm::processor::TimeMode;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How a processor was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// Spark's `transformWithState`.
    TransformWithState,
    /// Spark's `flatMapGroupsWithState`: other operators may not follow where its timeouts go by event time.
    FlatMapGroupsWithState,
}

/// A processor over its keys.
#[derive(Debug, Clone)]
pub(crate) struct ProcessorNode {
    /// The processor.
    pub(crate) processor: Arc<KnownProcessor>,
    /// How it was called.
    pub(crate) form: Form,
    /// The output mode that was said with the call.
    pub(crate) mode: Option<OutputMode>,
    /// Whether the last column of the input is event time.
    pub(crate) has_event_time: bool,
    /// Whether a column of the output is to carry event time.
    pub(crate) wants_event_time: bool,
    /// The column of the output that carries event time; none without a watermark.
    pub(crate) output_time: Option<usize>,
    pub(super) input: LogicalPlan,
    pub(super) initial: Option<LogicalPlan>,
    pub(super) schema: DFSchemaRef,
}

impl ProcessorNode {
    /// What the rows come from: the columns of the key, those of the input, and the event time.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// What the initial rows come from: the columns of the key, then theirs.
    pub(crate) fn initial(&self) -> Option<&LogicalPlan> {
        self.initial.as_ref()
    }

    /// Which time its timers go by.
    pub(crate) fn time_mode(&self) -> TimeMode {
        self.processor.signature.time_mode
    }

    /// Its name.
    pub(crate) fn processor_name(&self) -> &str {
        &self.processor.signature.name
    }

    /// The processor that a plan is, if it is one over a stream.
    pub(crate) fn of_stream(plan: &LogicalPlan) -> Option<&Self> {
        match plan {
            LogicalPlan::Extension(extension) => {
                extension.node.as_any().downcast_ref::<Self>().filter(|node| has_stream(&node.input))
            }
            _ => None,
        }
    }

    fn identity(&self) -> (usize, Form, Option<OutputMode>, Option<usize>) {
        (Arc::as_ptr(&self.processor) as usize, self.form, self.mode, self.output_time)
    }
}

impl PartialEq for ProcessorNode {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity() && self.input == other.input && self.initial == other.initial
    }
}

impl Eq for ProcessorNode {}

impl Hash for ProcessorNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
        self.input.hash(state);
        self.initial.hash(state);
    }
}

impl PartialOrd for ProcessorNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ProcessorNode {
    fn name(&self) -> &str {
        "Processor"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        std::iter::once(&self.input).chain(&self.initial).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.processor.signature.key.iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
        write!(f, "Processor: {} by {}", self.processor_name(), key.join(", "))
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs.into_iter();
        let Some(input) = inputs.next() else { return plan_err!("a processor has an input") };
        Ok(Self { input, initial: inputs.next(), ..self.clone() })
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let all = |plan: &LogicalPlan| (0..plan.schema().fields().len()).collect();
        Some(std::iter::once(&self.input).chain(&self.initial).map(all).collect())
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }
}
