//! The way of rows through a join: admitted, shared out, matched, stored, and in the end evicted.
//!
//! Between the operator, which is called with batches and barriers, and the parts that meet the store. Everything here
//! happens in the open batch.

use super::incoming::{Groups, Incoming};
use super::keep::KeepError;
use super::probe::{Emit, Probe, ProbeError, batch};
use super::side::{Expiry, Side, Which};
use super::{Join, JoinKind};
use crate::OperatorError;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::error::ArrowError;
use millstream_common::{Watermark, Watermarks};

impl Join {
    /// Takes out the rows that take no part: late ones, and those that fail the part of the condition that reads their
    /// side only. The latter come out at once where unmatched rows do.
    fn admit(
        &mut self,
        which: Which,
        rows: &RecordBatch,
        watermarks: Option<Watermarks>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<RecordBatch, OperatorError> {
        let side = self.side(which);
        let mut rows = rows.clone();
        let mut dropped = 0;
        if let Some(late) = watermarks.and_then(|watermarks| side.late(&rows, watermarks.late)) {
            dropped = late.true_count() as u64;
            if dropped > 0 {
                rows = select(&rows, &late, false).map_err(|error| self.failed(error))?;
            }
        }
        let passing = side.passing(&rows).map_err(|error| self.failed(error))?;
        if let Some(passing) = passing.filter(|passing| passing.true_count() < passing.len()) {
            if side.is_preserved {
                let unmatched = select(&rows, &passing, false).map_err(|error| self.failed(error))?;
                let columns = side.conform(&unmatched).map_err(|error| self.failed(error))?;
                let unmatched = self.with_nulls(which, columns, unmatched.num_rows());
                out.push(unmatched.map_err(|error| self.failed(error))?);
            }
            rows = select(&rows, &passing, true).map_err(|error| self.failed(error))?;
        }
        self.metrics.rows_dropped_by_watermark += dropped;
        Ok(rows)
    }

    fn side(&self, which: Which) -> &Side {
        match which {
            Which::Left => &self.left,
            Which::Right => &self.right,
        }
    }

    /// Rows of one side beside nulls.
    fn with_nulls(&self, which: Which, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
        with_nulls(&self.output, which, columns, rows)
    }

    /// Takes rows of one side: they meet the state of the other and become state of their own.
    pub(super) fn take_in(
        &mut self,
        which: Which,
        rows: &RecordBatch,
        watermarks: Option<Watermarks>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let rows = self.admit(which, rows, watermarks, out)?;
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let side = self.side(which);
        let columns = side.conform(&rows).map_err(|error| self.failed(error))?;
        let keys = side.keys(&rows).map_err(|error| self.failed(error))?;
        let times = side.own_times(&columns);
        let matched = vec![false; rows.num_rows()];
        let mut incoming = Incoming { columns, keys, times, matched, nulls_match: self.nulls_match };
        for (partition, groups) in incoming.share_out(side, self.state.count()).iter().enumerate() {
            if groups.len() > 0 {
                self.meet(which, &mut incoming, groups, partition, out)?;
                self.keep(which, &incoming, groups, partition, watermarks)?;
            }
        }
        if which == Which::Left && self.kind == JoinKind::LeftSemi && incoming.matched.contains(&true) {
            let matched = BooleanArray::from(incoming.matched);
            let first =
                batch(&self.output, incoming.columns, rows.num_rows()).and_then(|rows| select(&rows, &matched, true));
            out.push(first.map_err(|error| self.failed(error))?);
        }
        Ok(())
    }

    /// Lets rows of one partition meet the state of the other side.
    fn meet(
        &mut self,
        which: Which,
        incoming: &mut Incoming,
        groups: &Groups,
        partition: usize,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let other = match which {
            Which::Left => &self.right,
            Which::Right => &self.left,
        };
        let emit = match (self.kind, which) {
            (JoinKind::LeftSemi, Which::Left) => Emit::Marks,
            (JoinKind::LeftSemi, Which::Right) => Emit::Released(&self.output),
            _ => Emit::Pairs(&self.output),
        };
        let probe = Probe { other, condition: self.condition.as_ref(), emit };
        let partition = &mut self.state.all()[partition];
        let families = match other.families(partition) {
            Ok(families) => families,
            Err(error) => return Err(self.state_failed(error)),
        };
        let removed = probe.run(incoming, groups, partition, families, out).map_err(|error| match error {
            ProbeError::Condition(error) => OperatorError::from_expression(&self.description, error),
            ProbeError::State(fault) => fault.of(&self.description),
        })?;
        self.metrics.rows_removed += removed;
        self.change -= removed as i64;
        Ok(())
    }

    /// Stores rows of one partition that later rows of the other side may meet, or that are to come out unmatched.
    fn keep(
        &mut self,
        which: Which,
        incoming: &Incoming,
        groups: &Groups,
        partition: usize,
        watermarks: Option<Watermarks>,
    ) -> Result<(), OperatorError> {
        let side = match which {
            Which::Left => &self.left,
            Which::Right => &self.right,
        };
        let is_semi = self.kind == JoinKind::LeftSemi;
        // Left rows are still to be met by right rows of this batch, so they are stored even if they leave at its end. The
        // right state has seen all that it will see, except in a semi join.
        let through = match which {
            Which::Left => None,
            Which::Right => watermarks.and_then(|watermarks| side.expiry.through(watermarks.eviction)),
        };
        let times = if matches!(side.expiry, Expiry::ByKey(_)) { &incoming.keys.times } else { &incoming.times };
        let leaves_now = |row: usize| through.zip(times.get(row)).is_some_and(|(through, time)| *time <= through);
        let wanted = |row: usize| {
            let matched = incoming.matched[row];
            match (which, is_semi) {
                (Which::Left, true) => !matched,
                (Which::Left, false) | (Which::Right, true) => true,
                (Which::Right, false) => !leaves_now(row) || (side.is_preserved && !matched),
            }
        };
        let passing = match is_semi {
            true => groups.rows.iter().filter(|row| leaves_now(**row as usize)).count() as u64,
            false => 0,
        };
        let partition = &mut self.state.all()[partition];
        let kept = match side.families(partition) {
            Ok(families) => side.keep(incoming, groups, wanted, partition, families),
            Err(error) => return Err(self.state_failed(error)),
        };
        let kept = kept.map_err(|error| match error {
            KeepError::Rows(error) => self.failed(error),
            KeepError::State(fault) => fault.of(&self.description),
        })?;
        self.metrics.rows_updated += kept.saturating_sub(passing);
        self.passing += passing;
        self.change += kept as i64;
        Ok(())
    }

    /// Removes the rows of both sides that can match no more.
    pub(super) fn evict(&mut self, watermark: Watermark, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let mut removed = 0;
        for side in [&self.left, &self.right] {
            let Some(through) = side.expiry.through(watermark) else { continue };
            for partition in self.state.all() {
                let families = side
                    .families(partition)
                    .map_err(|source| OperatorError::State { operator: self.description.clone(), source })?;
                let mut failure = None;
                let evicted = side.evict(through, partition, families, &mut |columns, rows| {
                    match with_nulls(&self.output, side.which, columns, rows) {
                        Ok(rows) => out.push(rows),
                        Err(error) => failure = Some(error),
                    }
                    Ok(())
                });
                if let Some(error) = failure {
                    return Err(OperatorError::from_expression(&self.description, error.into()));
                }
                removed += evicted.map_err(|fault| fault.of(&self.description))?;
            }
        }
        self.metrics.rows_removed += removed.saturating_sub(std::mem::take(&mut self.passing));
        self.change -= removed as i64;
        Ok(())
    }
}

/// The rows for which `verdict` is `wanted`.
fn select(rows: &RecordBatch, verdict: &BooleanArray, wanted: bool) -> Result<RecordBatch, ArrowError> {
    if wanted { filter_record_batch(rows, verdict) } else { filter_record_batch(rows, &not(verdict)?) }
}

fn with_nulls(
    output: &SchemaRef,
    which: Which,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let others = output.fields().len() - columns.len();
    let nulls = |fields: &[FieldRef]| -> Vec<ArrayRef> {
        fields.iter().map(|field| new_null_array(field.data_type(), rows)).collect()
    };
    let columns = match which {
        Which::Left => {
            let nulls = nulls(&output.fields()[columns.len()..]);
            columns.into_iter().chain(nulls).collect()
        }
        Which::Right => nulls(&output.fields()[..others]).into_iter().chain(columns).collect(),
    };
    batch(output, columns, rows)
}
