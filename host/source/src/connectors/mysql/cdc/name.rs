//! The name of the table, as the log has it.

/// How a server compares the names of databases and tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// Names in other letters are other names.
    Matters,
    /// Capital letters are small ones.
    Folds,
}

impl Case {
    /// By the server's `lower_case_table_names`: with 1 it keeps names in small letters, with 2 it only compares them so.
    pub(super) fn of(setting: &str) -> Self {
        if matches!(setting, "1" | "2") { Self::Folds } else { Self::Matters }
    }
}

/// The database and the name of the table as the server writes them, which may be otherwise than the user does.
#[derive(Debug, Clone)]
pub(super) struct LoggedName {
    database: String,
    table: String,
    case: Case,
}

impl LoggedName {
    pub(super) fn new(database: &str, table: &str, case: Case) -> Self {
        Self { database: database.to_owned(), table: table.to_owned(), case }
    }

    /// Whether a name is the table's.
    pub(super) fn is(&self, database: &str, table: &str) -> bool {
        self.is_same(&self.table, table) && self.is_in(database)
    }

    /// Whether a name is that of the table's database.
    pub(super) fn is_in(&self, database: &str) -> bool {
        self.is_same(&self.database, database)
    }

    fn is_same(&self, ours: &str, other: &str) -> bool {
        ours == other || self.case == Case::Folds && ours.to_lowercase() == other.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_the_server_does() {
        for (setting, is_same) in [("0", false), ("1", true), ("2", true), ("", false)] {
            let name = LoggedName::new("shop", "items", Case::of(setting));
            assert!(name.is("shop", "items") && !name.is("shop", "item"), "{setting}");
            assert_eq!(name.is("Shop", "Items"), is_same, "{setting}");
        }
    }
}
