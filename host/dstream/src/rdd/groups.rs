//! Rows by key, in the order in which the keys came first.
//!
//! The order does not depend on a hash, so a batch that is run again gives its rows in the same order.

use crate::Key;
use std::collections::HashMap;

/// One value per key.
pub(crate) struct Groups<K, C> {
    numbers: HashMap<K, usize>,
    rows: Vec<(K, C)>,
}

impl<K: Key, C: Default> Groups<K, C> {
    pub(crate) fn new() -> Self {
        Self { numbers: HashMap::new(), rows: Vec::new() }
    }

    /// The value of a key; the default for a new one.
    pub(crate) fn of(&mut self, key: K) -> &mut C {
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                self.numbers.insert(key.clone(), self.rows.len());
                self.rows.push((key, C::default()));
                self.rows.len() - 1
            }
        };
        &mut self.rows[number].1
    }

    pub(crate) fn into_rows(self) -> Vec<(K, C)> {
        self.rows
    }
}
