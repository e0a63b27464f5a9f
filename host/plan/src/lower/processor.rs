//! A processor as a stateful operator.

use super::{Lowering, arrow_schema, physical_column, unary};
use crate::processor::ProcessorNode;
use crate::{PlanError, static_subquery};
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use millstream_operators::{self as ops, EventTimeKind, Node, ProcessorSpec};
use millstream_wasm::processor::TimeMode;
use std::sync::Arc;

impl Lowering<'_> {
    /// The processor of that scope.
    pub(super) fn processor(&mut self, node: &ProcessorNode, scope: &str) -> Result<Node, PlanError> {
        let uid = self.uids.assign(scope, "processor")?;
        // What stands below it in the same scope is told from what stands above.
        let child = self.node(node.input(), &format!("{scope}-input"))?;
        let initial: Vec<RecordBatch> = match node.initial() {
            Some(initial) => static_subquery::rows_of(initial, self.session)?,
            None => Vec::new(),
        };
        let input = arrow_schema(node.input());
        let event_time = (node.has_event_time && node.time_mode() == TimeMode::EventTime).then(|| {
            let index = input.fields().len() - 1;
            let kind = match input.field(index).data_type() {
                DataType::Struct(_) => EventTimeKind::Window,
                _ => EventTimeKind::Timestamp,
            };
            (index, kind)
        });
        let known = &node.processor;
        let spec = ProcessorSpec {
            uid,
            plugin: known.plugin.clone(),
            signature: known.signature.clone(),
            code: Arc::clone(&known.code),
            event_time,
            output: Arc::new(datafusion::logical_expr::UserDefinedLogicalNodeCore::schema(node).as_arrow().clone()),
            output_time: node.output_time,
            initial,
            partitions: self.input.settings.partitions,
            input,
        };
        let time = spec.event_time.map(|(index, _)| physical_column(&spec.input, index));
        let child = self.late_rows(&spec.uid, time, &spec.input, child)?;
        unary(ops::Processor::try_new(spec), child)
    }
}
