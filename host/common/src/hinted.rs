//! An error that keeps its advice on a way through code that knows nothing of it.
//!
//! Functions of SQL hand their errors to DataFusion, which carries any error; who stands behind it asks for this type to
//! learn whose turn it is. It shows nothing of its own.

use crate::fault::{Fault, Hint, find_cause};
use std::error::Error;
use std::fmt;

/// An error with [`Hint`], whatever its type is.
#[derive(Debug)]
pub struct Hinted(Box<dyn Hint + Send + Sync>);

impl Hinted {
    /// Wraps an error.
    pub fn new(error: impl Hint + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// The first of these among an error and its causes.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find_cause(error)
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Hinted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl Hint for Hinted {
    fn fault(&self) -> Fault {
        self.0.fault()
    }

    fn may_pass(&self) -> bool {
        self.0.may_pass()
    }

    fn hint(&self) -> Option<String> {
        self.0.hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OptionError;

    #[derive(Debug, thiserror::Error)]
    #[error("on the way")]
    struct Way(#[source] Hinted);

    #[derive(Debug, thiserror::Error)]
    #[error("the broker is gone")]
    struct Gone;

    impl Hint for Gone {
        fn fault(&self) -> Fault {
            Fault::Outside
        }
    }

    #[test]
    fn the_advice_is_found_behind_other_errors() {
        let way = Way(Hinted::new(Gone));
        let found = Hinted::find(&way).unwrap();
        assert_eq!((found.fault(), found.to_string().as_str()), (Fault::Outside, "the broker is gone"));
        assert!(Hinted::find(&OptionError::Missing { owner: "x".into(), option: "y".into() }).is_none());
    }
}
