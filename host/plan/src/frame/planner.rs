//! Makes frames: each operation is planned when it is written.

use super::{DEPTH_MAX, Frame, FrameNode, Operation, SIZE_MAX, step};
use crate::deep_stack::on_deep_stack;
use crate::front::Front;
use crate::input::{BeyondSpark, PlanSettings, Query, QueryInput};
use crate::plan::Purpose;
use crate::{PlanError, StaticTable};
use datafusion::sql::sqlparser::ast::{ObjectName, Visit, Visitor};
use millstream_common::{OutputMode, SqlSettings};
use millstream_wasm::PluginSlot;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Makes the frames of one session.
pub struct FramePlanner {
    front: Front,
}

impl FramePlanner {
    /// A planner that knows the functions of `plugins`.
    ///
    /// # Errors
    /// When two functions have one name.
    pub fn new(plugins: Vec<Arc<PluginSlot>>, settings: SqlSettings) -> Result<Self, PlanError> {
        let input = QueryInput {
            streams: Vec::new(),
            tables: Vec::new(),
            plugins,
            // Frames bring what they read.
            query: Query::Sql(String::new()),
            mode: OutputMode::Append,
            settings: PlanSettings {
                sql: settings,
                partitions: 1,
                uids: BTreeMap::new(),
                beyond: BeyondSpark::default(),
            },
        };
        Ok(Self { front: Front::new(&input, &Purpose::Stream)? })
    }

    /// The frame of `operation` over `inputs`.
    ///
    /// # Errors
    /// When it names what is not there, types do not fit, or the tree is too deep or too large.
    pub fn frame(&mut self, operation: Operation, inputs: Vec<Frame>) -> Result<Frame, PlanError> {
        let depth = 1 + inputs.iter().map(|input| input.node.depth).max().unwrap_or(0);
        let size = inputs.iter().fold(1_usize, |size, input| size.saturating_add(input.node.size));
        if depth > DEPTH_MAX || size > SIZE_MAX {
            return Err(PlanError::Unsupported {
                rule: "frame-too-large",
                reason: format!(
                    "a frame may have {DEPTH_MAX} operations above each other and {SIZE_MAX} in all, and this one has {depth} and {size}"
                ),
                hint: "put several columns into one select, and several conditions into one filter".into(),
            });
        }
        let plans = inputs.iter().map(|input| input.written().clone()).collect();
        let tables: &[StaticTable] = &[];
        let method = operation.method();
        let front = &mut self.front;
        let planned = on_deep_stack(|| {
            let written = step::plan(&operation, plans, front, tables)?;
            Ok((front.analyze(written.clone())?, written))
        });
        let (analyzed, written) = planned.map_err(|error| match error {
            PlanError::Sql { message } => PlanError::Method { method, message },
            other => other,
        })?;
        let node = FrameNode { operation, inputs, depth, size, written, analyzed };
        Ok(Frame { node: Arc::new(node) })
    }

    /// A stream as it was declared, under another name; `None` when `frame` is a query over one.
    ///
    /// # Errors
    /// As [`frame`](Self::frame).
    pub fn renamed_stream(&mut self, frame: &Frame, name: &str) -> Result<Option<Frame>, PlanError> {
        match (frame.operation(), frame.inputs()) {
            (Operation::Stream { schema, .. }, _) => {
                let operation = Operation::Stream { name: name.to_owned(), schema: Arc::clone(schema) };
                self.frame(operation, Vec::new()).map(Some)
            }
            (Operation::Watermark { .. } | Operation::DropDuplicates { .. }, [input]) => {
                let Some(input) = self.renamed_stream(input, name)? else { return Ok(None) };
                self.frame(frame.operation().clone(), vec![input]).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The relations that a query in SQL names, for the views among them.
///
/// # Errors
/// When it does not parse.
pub fn relations_of(sql: &str) -> Result<Vec<String>, PlanError> {
    struct Relations(Vec<String>);
    impl Visitor for Relations {
        type Break = std::convert::Infallible;
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
            self.0.extend(crate::sql::rewrite::single_name(relation).map(str::to_owned));
            ControlFlow::Continue(())
        }
    }
    let query = crate::sql::parse::parse_query(sql)?;
    let mut found = Relations(Vec::new());
    let ControlFlow::Continue(()) = query.visit(&mut found);
    Ok(found.0)
}
