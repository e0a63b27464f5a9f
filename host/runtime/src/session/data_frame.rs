//! A query in the making (Spark's `DataFrame`): a tree of operations and what it reads.

use super::reads::Reads;
use super::{DataStreamWriter, Session};
use crate::RuntimeError;
use crate::spec::{StreamSpec, TableSpec};
use arrow::datatypes::SchemaRef;
use millstream_plan::Frame;
use millstream_plan::frame::Operation;
use std::sync::Arc;

/// A stream, a static table, or what is computed of them. Cheap to clone; nothing runs before
/// [`write_stream`](Self::write_stream) starts a query.
///
/// Every method plans its step at once, with the same planner as SQL text, so a column that is not there is refused by the method
/// that names it. What may not stream is refused when the query starts, for it depends on the output mode.
///
/// A stateful step is named by the view or the [`alias`](Self::alias) around it, as in SQL by the WITH clause. Closures
/// ([`map_batches`](Self::map_batches), `foreach_batch`) are code of the program: a restart runs those of the new program.
#[derive(Debug, Clone)]
pub struct DataFrame {
    session: Session,
    frame: Frame,
    reads: Reads,
    /// Whether it is a stream that was given no name and is not yet part of a query.
    is_unnamed: bool,
}

impl DataFrame {
    pub(super) fn stream(session: &Session, mut stream: StreamSpec, is_unnamed: bool) -> Result<Self, RuntimeError> {
        let schema = session.schema_of(&mut stream.source)?;
        let operation = Operation::Stream { name: stream.source.name.clone(), schema };
        let frame = session.frame(operation, Vec::new())?;
        Ok(Self { session: session.clone(), frame, reads: Reads::stream(stream), is_unnamed })
    }

    pub(super) fn table(
        session: &Session,
        name: String,
        schema: SchemaRef,
        table: TableSpec,
    ) -> Result<Self, RuntimeError> {
        let frame = session.frame(Operation::Table { name, schema }, Vec::new())?;
        Ok(Self { session: session.clone(), frame, reads: Reads::table(table), is_unnamed: false })
    }

    /// SQL over views, in the order in which the operation names them.
    pub(super) fn sql(session: &Session, text: &str, views: Vec<(String, Self)>) -> Result<Self, RuntimeError> {
        let (names, frames): (Vec<_>, Vec<_>) = views.into_iter().unzip();
        let operation = Operation::Sql { text: text.to_owned(), views: names };
        let reads = Reads::of_all(frames.iter().map(|frame: &Self| &frame.reads))?;
        let frame = session.frame(operation, frames.into_iter().map(|frame| frame.frame).collect())?;
        Ok(Self { session: session.clone(), frame, reads, is_unnamed: false })
    }

    /// An operation over this frame.
    pub(super) fn then(&self, operation: Operation) -> Result<Self, RuntimeError> {
        let keeps = matches!(operation, Operation::Watermark { .. } | Operation::DropDuplicates { .. });
        let frame = self.session.frame(operation, vec![self.frame.clone()])?;
        let is_unnamed = self.is_unnamed && keeps;
        Ok(Self { session: self.session.clone(), frame, reads: self.reads.clone(), is_unnamed })
    }

    /// An operation over this frame and another one.
    pub(super) fn with(&self, other: &Self, operation: Operation) -> Result<Self, RuntimeError> {
        let reads = Reads::of_all([&self.reads, &other.reads])?;
        let frame = self.session.frame(operation, vec![self.frame.clone(), other.frame.clone()])?;
        Ok(Self { session: self.session.clone(), frame, reads, is_unnamed: false })
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.frame.schema()
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Whether rows of a stream are in it.
    pub fn is_streaming(&self) -> bool {
        self.frame.is_streaming()
    }

    /// Its logical plan, for people.
    pub fn explain(&self) -> String {
        self.frame.explain()
    }

    /// Gives it a name for use in SQL. A stream that has no name of its own gets this one, which names its source in the checkpoint.
    ///
    /// # Errors
    /// When the name is no identifier.
    pub fn create_or_replace_temp_view(&self, name: &str) -> Result<(), RuntimeError> {
        check_name(name)?;
        let mut view = self.clone();
        if self.is_unnamed
            && let Some(frame) = self.session.renamed_stream(&self.frame, name)?
        {
            view = Self { frame, reads: self.reads.renamed(name), is_unnamed: false, ..view };
        }
        self.session.add_view(name, view);
        Ok(())
    }

    /// Writes it.
    pub fn write_stream(&self) -> DataStreamWriter {
        DataStreamWriter::new(self.clone())
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(super) fn reads(&self) -> &Reads {
        &self.reads
    }
}

/// Refuses names that are no identifiers.
pub(super) fn check_name(name: &str) -> Result<(), RuntimeError> {
    let is_identifier = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && !name.starts_with("__");
    if is_identifier {
        return Ok(());
    }
    Err(RuntimeError::Invalid {
        reason: format!("`{name}` cannot name a stream, a view or a frame"),
        hint: Some("use letters, digits and `_`, and no two `_` in front".into()),
    })
}

/// A static table as a frame; the name is ours.
pub(super) fn static_table(
    session: &Session,
    make: impl FnOnce(String) -> Result<(SchemaRef, TableSpec), RuntimeError>,
) -> Result<DataFrame, RuntimeError> {
    let name = format!("__table_{}", session.next_number());
    let (schema, table) = make(name.clone())?;
    DataFrame::table(session, name, Arc::clone(&schema), table)
}
