//! An aggregate function, checked.

use arrow::datatypes::FieldRef;
use std::fmt;
use std::slice;

use super::list;

/// One aggregate function of a component, as its `describe` answered and the host checked.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateSignature {
    /// The name in SQL: a lower-case identifier.
    pub name: String,
    /// Its arguments, at least one: name, Arrow type, nullable.
    pub arguments: Vec<FieldRef>,
    /// Its result. It may always be null in the end, for states whose evaluation failed under a policy that goes on.
    pub result: FieldRef,
    /// The columns of one group's state, at least one. They are what a checkpoint keeps.
    pub state: Vec<FieldRef>,
    /// The author's name for what the state columns mean: columns under another name mean something else.
    pub state_id: String,
    /// Whether the guest sees rows with a null argument. Where not, the host leaves them out.
    pub nulls_passed: bool,
    /// Whether rows can be taken back out of a state.
    pub retracts: bool,
}

impl fmt::Display for AggregateSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, arguments, result, state, state_id, .. } = self;
        write!(f, "aggregate {name}({}) -> {}", list(arguments), list(slice::from_ref(result)))?;
        write!(f, ", state ({})", list(state))?;
        if !state_id.is_empty() {
            write!(f, " `{state_id}`")?;
        }
        Ok(())
    }
}
