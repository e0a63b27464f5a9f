//! What a join is made of: handed over by the planner once per run.

use crate::EventTimeKey;
use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExprRef;
use millstream_common::{OperatorUid, Watermark};
use std::fmt;

/// Which rows come out of a join besides the matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// None.
    Inner,
    /// Left rows that found no match, when they leave the state.
    LeftOuter,
    /// Right rows that found no match, when they leave the state.
    RightOuter,
    /// Both.
    FullOuter,
    /// Left rows at their first match, alone.
    LeftSemi,
}

impl fmt::Display for JoinKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inner => "inner",
            Self::LeftOuter => "left outer",
            Self::RightOuter => "right outer",
            Self::FullOuter => "full outer",
            Self::LeftSemi => "left semi",
        })
    }
}

/// Until when a row can still meet rows of the other side: from the condition `other time + offset < own time`, or `<=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBound {
    /// What is added to the other side's time, in microseconds.
    pub offset_us: i64,
    /// Equal times match too: such rows are kept one millisecond longer.
    pub inclusive: bool,
    /// The condition compares whole seconds.
    pub whole_seconds: bool,
}

impl TimeBound {
    /// The time through which rows can go when nothing before `watermark` is to come from the other side.
    pub fn state_watermark(&self, watermark: Watermark) -> Watermark {
        let other_us = match self.whole_seconds {
            true => watermark.0.div_euclid(1000).saturating_mul(1_000_000),
            false => watermark.as_micros(),
        };
        let own_ms = other_us.saturating_add(self.offset_us) / 1000;
        Watermark(if self.inclusive { own_ms.saturating_sub(1) } else { own_ms })
    }
}

/// One side of a join.
#[derive(Debug, Clone)]
pub struct JoinSide {
    /// The columns of its rows.
    pub schema: SchemaRef,
    /// The expressions that must equal those of the other side, pair by pair; of the same types there.
    pub keys: Vec<PhysicalExprRef>,
    /// The part of the condition that reads this side only.
    pub filter: Option<PhysicalExprRef>,
    /// The column that carries event time, if one does: rows at or before the watermark are late.
    pub event_time: Option<EventTimeKey>,
    /// What bounds the event time of rows that can still match; without any, rows of this side stay for ever. The
    /// event time is then a timestamp.
    pub bounds: Vec<TimeBound>,
}

/// What a join is made of.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// The operator's stable name.
    pub uid: OperatorUid,
    /// Which rows come out.
    pub kind: JoinKind,
    /// Port 0.
    pub left: JoinSide,
    /// Port 1.
    pub right: JoinSide,
    /// The rest of the condition, over the columns of the left side and then those of the right side.
    pub condition: Option<PhysicalExprRef>,
    /// Keys with nulls match keys with the same nulls.
    pub nulls_match: bool,
    /// The pair of keys that carries event time, if one does, by its position: both sides then forget a row when the
    /// watermark reaches it, whatever the bounds say.
    pub event_time_key: Option<EventTimeKey>,
    /// The columns of the rows that go out: left and right ones, or the left ones alone for a semi join.
    pub output: SchemaRef,
    /// Over how many partitions the keys are spread.
    pub partitions: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_follows_the_watermark_at_its_offset() {
        let bound = TimeBound { offset_us: -600_000_000, inclusive: false, whole_seconds: false };
        assert_eq!(bound.state_watermark(Watermark(1_000_000)), Watermark(400_000));
        let inclusive = TimeBound { inclusive: true, ..bound };
        assert_eq!(inclusive.state_watermark(Watermark(1_000_000)), Watermark(399_999));
        let coarse = TimeBound { whole_seconds: true, ..bound };
        assert_eq!(coarse.state_watermark(Watermark(1_000_999)), Watermark(400_000));
        let extreme = TimeBound { offset_us: i64::MIN, ..bound };
        assert!(extreme.state_watermark(Watermark(i64::MIN)) < Watermark(0));
    }
}
