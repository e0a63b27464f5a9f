//! What differs between databases.

use super::TableColumn;
use arrow::array::RecordBatch;
use arrow::datatypes::Field;
use millstream_client::database::{Address, DatabaseError, Product, TableName};
use millstream_common::StopSignal;

/// A kind of database: its words, and how it is reached.
pub(crate) trait Dialect: Send + Sync {
    /// The name in `.format("…")`.
    fn format(&self) -> &'static str;

    /// Which database it is.
    fn product(&self) -> Product;

    /// A name as statements write it.
    fn quote(&self, name: &str) -> String {
        self.product().quote(name)
    }

    /// A text as statements write it.
    fn literal(&self, text: &str) -> String {
        self.product().literal(text)
    }

    /// Whether a row that is written by key writes over the row that it meets by any other unique index, without a word.
    fn meets_by_any_index(&self) -> bool;

    /// The type of the column that holds a field, in a table that is created. The field has a counterpart.
    fn column_type(&self, field: &Field, is_key: bool) -> String;

    /// What stands behind the columns of a table that is created.
    fn table_options(&self) -> &'static str;

    /// A statement that adds a row to `table`, or adds one to its `counter` when its key is there.
    fn count_up(&self, table: &str, columns: [&str; 3], values: [&str; 2]) -> String;

    /// Opens a connection, on which nobody waits who wants to stop.
    fn connect(&self, address: &Address, stop: &StopSignal) -> Result<Box<dyn Session>, DatabaseError>;
}

/// How rows are loaded.
#[derive(Debug)]
pub(crate) struct Load {
    /// The table, as statements write it.
    pub(crate) table: String,
    /// The names of the columns that are written, as statements write them.
    pub(crate) columns: Vec<String>,
    /// Where in the rows each of them is.
    pub(crate) indices: Vec<usize>,
    /// Which of `columns` are the key; empty when rows are only added.
    pub(crate) key: Vec<usize>,
    /// Where in the rows stands what changes, if they are changes.
    pub(crate) change: Option<usize>,
    /// How many rows a statement has at most.
    pub(crate) batch_size: usize,
}

/// The word for a change that takes the row of a key away; all others but the next put it there.
pub(crate) const DELETE: &str = "delete";

/// The word for a change that takes all rows away.
pub(crate) const TRUNCATE: &str = "truncate";

/// Rows could not be loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The database did not take them.
    Database(DatabaseError),
    /// They hold what the database does not have.
    Rows(String),
}

impl From<DatabaseError> for LoadError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<arrow::error::ArrowError> for LoadError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::Rows(error.to_string())
    }
}

/// An open connection. After an error in a transaction it is of no more use.
pub(crate) trait Session: Send {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), DatabaseError>;

    /// Runs statements that answer nothing.
    fn run(&mut self, sql: &str) -> Result<(), DatabaseError>;

    /// Runs a statement and answers its rows as text.
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError>;

    /// The columns of a table that can be written; `None` when there is no such table.
    fn columns(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>, DatabaseError>;

    /// Why a table cannot be written in transactions, if it cannot.
    fn check_table(&mut self, table: &TableName) -> Result<Option<String>, DatabaseError>;

    /// The columns of each unique index of a table.
    fn unique_keys(&mut self, table: &TableName) -> Result<Vec<Vec<String>>, DatabaseError>;

    /// Loads rows in the transaction that has begun.
    fn load(&mut self, load: &Load, rows: &[RecordBatch]) -> Result<(), LoadError>;
}
