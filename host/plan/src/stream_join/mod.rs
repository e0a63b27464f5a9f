//! What a join of two streams needs to know of its condition.
//!
//! Between the logical plan and the operator: the condition is taken apart into keys and parts, the event times that it
//! compares become bounds on how long rows are kept, and what it implies for the rows of one side alone becomes filters
//! on the inputs. Both the check of what may stream and the lowering ask here, so that they cannot disagree.
//!
//! It knows joins of streams with streams; the filters it also makes for joins with static tables.

mod condition;
mod implied;
mod time_bound;

pub(crate) use condition::JoinCondition;
pub(crate) use implied::filter_inputs;
pub(crate) use time_bound::{EventTimes, event_time_of, is_bounded};
