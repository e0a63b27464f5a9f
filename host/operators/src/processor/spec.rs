//! What a processor is made of: handed over by the planner once per run.

use super::ProcessorCode;
use crate::EventTimeKind;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, SchemaRef, TimeUnit};
use millstream_common::OperatorUid;
use millstream_wasm::processor::ProcessorSignature;
use std::sync::Arc;

/// What a processor is made of.
#[derive(Clone)]
pub struct ProcessorSpec {
    /// The operator's stable name.
    pub uid: OperatorUid,
    /// The plugin that the code is in.
    pub plugin: String,
    /// What the code says of itself.
    pub signature: ProcessorSignature,
    /// The code.
    pub code: Arc<dyn ProcessorCode>,
    /// The columns of the rows that come in: those of the key, those of the processor's input, then others.
    pub input: SchemaRef,
    /// The column of the input by which rows are late, if there is a watermark.
    pub event_time: Option<(usize, EventTimeKind)>,
    /// The columns of the rows that go out.
    pub output: SchemaRef,
    /// The column of the output that carries event time, if one does: a timestamp in microseconds.
    pub output_time: Option<usize>,
    /// Initial rows: the columns of the key, then those of the processor's initial rows.
    pub initial: Vec<RecordBatch>,
    /// Over how many partitions the keys are spread.
    pub partitions: u32,
}

impl ProcessorSpec {
    /// Checks that the parts fit together.
    pub(super) fn check(&self) -> Result<(), String> {
        let types = |fields: &mut dyn Iterator<Item = &FieldRef>| {
            fields.map(|field| field.data_type().clone()).collect::<Vec<_>>()
        };
        let signature = &self.signature;
        let fits = |what: &str, has: Vec<_>, wanted: Vec<_>| {
            if has == wanted {
                Ok(())
            } else {
                Err(format!("the columns of {what} are {has:?}, {wanted:?} are wanted"))
            }
        };
        let wanted = types(&mut signature.key.iter().chain(&signature.input));
        let has = types(&mut self.input.fields().iter());
        if has.len() < wanted.len() {
            return Err(format!("its input has {} columns, {} are wanted", has.len(), wanted.len()));
        }
        fits("its input", has[..wanted.len()].to_vec(), wanted)?;
        fits("its output", types(&mut self.output.fields().iter()), types(&mut signature.output.iter()))?;
        for rows in &self.initial {
            let wanted = types(&mut signature.key.iter().chain(&signature.initial));
            fits("its initial rows", types(&mut rows.schema().fields().iter()), wanted)?;
        }
        let is_time = |kind: &DataType| matches!(kind, DataType::Timestamp(TimeUnit::Microsecond, _));
        if let Some(index) = self.output_time
            && !self.output.fields().get(index).is_some_and(|field| is_time(field.data_type()))
        {
            return Err("the event time of its output is no timestamp".to_owned());
        }
        match self.event_time {
            Some((index, _)) if index >= self.input.fields().len() => Err(format!("there is no column {index}")),
            Some((index, EventTimeKind::Timestamp)) if !is_time(self.input.field(index).data_type()) => {
                Err("its event time is no timestamp".to_owned())
            }
            _ => Ok(()),
        }
    }
}
