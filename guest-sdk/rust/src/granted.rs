//! What is granted by name, where there is no host: in tests, a test says what the answers are.

#![cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "a component asks its host"))]

use crate::http::{Failure, Request, Response};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Answers requests in the place of the world.
pub(crate) type Answers = Box<dyn FnMut(&Request) -> Result<Response, Failure>>;

/// What a test grants.
#[derive(Default)]
pub(crate) struct Granted {
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) time_ms: i64,
    pub(crate) answers: Option<Answers>,
    /// The last random number.
    pub(crate) random: u64,
}

thread_local! {
    static GRANTED: RefCell<Granted> = RefCell::default();
}

/// Looks at what the test of this thread grants, or changes it.
pub(crate) fn with<T>(look: impl FnOnce(&mut Granted) -> T) -> T {
    GRANTED.with(|granted| look(&mut granted.borrow_mut()))
}
