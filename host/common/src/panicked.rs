//! Work that may panic and must not take its caller along: functions of a program, readers of foreign files, the thread of a
//! query.
//!
//! The caller throws away whatever the work has left half done; then nobody sees it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Work panicked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it panicked: {message}")]
pub struct Panicked {
    /// Its last words.
    pub message: String,
}

impl Panicked {
    /// What a thread that was joined has left.
    pub fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self { message: text.unwrap_or_else(|| "without a word".to_owned()) }
    }
}

/// Does the work.
///
/// # Errors
/// When it panics.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Panicked::of(panic.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_last_words() {
        let words = |work: fn()| guarded(work).unwrap_err().to_string();
        assert_eq!(guarded(|| 7), Ok(7));
        assert_eq!(words(|| panic!("no rows")), "it panicked: no rows");
        assert_eq!(words(|| panic!("row {}", 3)), "it panicked: row 3");
        assert_eq!(words(|| std::panic::panic_any(3)), "it panicked: without a word");
    }
}
