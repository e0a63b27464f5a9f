//! What a frame is made of: one operation over the frames below it.

use super::column::Column;
use crate::PlanError;
use arrow::datatypes::SchemaRef;
use millstream_common::OutputMode;
use millstream_operators::MapFunction;
use std::fmt;

/// One step of a frame.
#[derive(Clone)]
pub enum Operation {
    /// A stream, by the name under which its rows enter.
    Stream {
        /// The name.
        name: String,
        /// The columns.
        schema: SchemaRef,
    },
    /// A static table.
    Table {
        /// The name.
        name: String,
        /// The columns.
        schema: SchemaRef,
    },
    /// A query in SQL; its inputs are the views that it names, in the order of `views`.
    Sql {
        /// One SELECT.
        text: String,
        /// The names of the inputs.
        views: Vec<String>,
    },
    /// These columns.
    Select(Vec<Column>),
    /// All columns, and one that is added or takes the place of the one with its name.
    WithColumn(String, Column),
    /// All columns, one under another name.
    Rename {
        /// The name it has.
        from: String,
        /// The name it gets.
        to: String,
    },
    /// All columns but these.
    Drop(Vec<String>),
    /// The rows for which the condition holds.
    Filter(Column),
    /// One row per key.
    Aggregate {
        /// What makes the key.
        keys: Vec<Column>,
        /// What is computed per key.
        values: Vec<Column>,
    },
    /// The code of a plugin over keys, their state and their timers; a second input has initial rows.
    Process(ProcessCall),
    /// Rows of two inputs that belong together.
    Join {
        /// What must hold.
        on: JoinOn,
        /// Which rows come out.
        kind: JoinKind,
    },
    /// The rows of two inputs.
    Union {
        /// Whether columns belong together by name, and not by place.
        by_name: bool,
    },
    /// Declares event time.
    Watermark {
        /// The column.
        column: String,
        /// How long late rows are waited for, in microseconds.
        delay_us: i64,
    },
    /// The first row per key.
    DropDuplicates {
        /// The columns that make the key; none means all.
        columns: Vec<String>,
        /// Whether a key is forgotten after the watermark's delay.
        within_watermark: bool,
    },
    /// Every row once.
    Distinct,
    /// The rows in order.
    OrderBy(Vec<Column>),
    /// The first rows.
    Limit(usize),
    /// A name: for its columns in joins, and for the state of the operators below it.
    Alias(String),
    /// Rows made of rows by a function of the program.
    Map {
        /// The columns that the function gives.
        schema: SchemaRef,
        /// The function.
        function: MapFunction,
    },
}

/// A call of a plugin's stateful processor.
#[derive(Debug, Clone)]
pub struct ProcessCall {
    /// The processor.
    pub processor: String,
    /// What makes the keys.
    pub keys: Vec<Column>,
    /// What makes the keys of initial rows; none: the columns that are named as those of the processor's key.
    pub initial_keys: Vec<Column>,
    /// Which rows go out; the query must have the same mode.
    pub mode: OutputMode,
    /// The column of the output that carries event time.
    pub event_time: Option<String>,
    /// Whether it is Spark's `flatMapGroupsWithState`, which other stateful operations may not follow where timeouts go by
    /// event time.
    pub is_flat_map: bool,
}

/// What must hold for two rows to be joined.
#[derive(Debug, Clone)]
pub enum JoinOn {
    /// Columns of these names are equal; each comes out once.
    Columns(Vec<String>),
    /// A condition.
    Condition(Column),
    /// Nothing.
    Nothing,
}

impl From<Column> for JoinOn {
    fn from(condition: Column) -> Self {
        Self::Condition(condition)
    }
}

impl From<&[&str]> for JoinOn {
    fn from(names: &[&str]) -> Self {
        Self::Columns(names.iter().map(|name| (*name).to_owned()).collect())
    }
}

impl<const N: usize> From<&[&str; N]> for JoinOn {
    fn from(names: &[&str; N]) -> Self {
        Self::from(names.as_slice())
    }
}

impl<const N: usize> From<[&str; N]> for JoinOn {
    fn from(names: [&str; N]) -> Self {
        Self::from(names.as_slice())
    }
}

/// Which rows a join gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// All pairs that there are.
    Cross,
    /// Pairs, and rows of the left side without one.
    Left,
    /// Pairs, and rows of the right side without one.
    Right,
    /// Pairs, and rows of both sides without one.
    Full,
    /// Rows of the left side that have a partner.
    LeftSemi,
    /// Rows of the left side that have none.
    LeftAnti,
}

impl std::str::FromStr for JoinKind {
    type Err = PlanError;

    /// Spark's words: `inner`, `left_outer`, `fullouter`, …
    fn from_str(text: &str) -> Result<Self, PlanError> {
        Ok(match text.to_ascii_lowercase().replace('_', "").as_str() {
            "inner" => Self::Inner,
            "cross" => Self::Cross,
            "left" | "leftouter" => Self::Left,
            "right" | "rightouter" => Self::Right,
            "full" | "outer" | "fullouter" => Self::Full,
            "semi" | "leftsemi" => Self::LeftSemi,
            "anti" | "leftanti" => Self::LeftAnti,
            _ => {
                let known = "inner, cross, left, right, full, left_semi, left_anti";
                return Err(PlanError::Sql { message: format!("`{text}` is no kind of join; there are {known}") });
            }
        })
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.method())
    }
}

impl Operation {
    /// The method of a frame that makes it, for messages.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Stream { .. } | Self::Table { .. } => "load",
            Self::Sql { .. } => "sql",
            Self::Select(_) => "select",
            Self::WithColumn(..) => "with_column",
            Self::Rename { .. } => "with_column_renamed",
            Self::Drop(_) => "drop",
            Self::Filter(_) => "filter",
            Self::Aggregate { .. } => "agg",
            Self::Process(call) if call.is_flat_map => "flat_map_groups_with_state",
            Self::Process(_) => "transform_with_state",
            Self::Join { .. } => "join",
            Self::Union { by_name: false } => "union",
            Self::Union { by_name: true } => "union_by_name",
            Self::Watermark { .. } => "with_watermark",
            Self::DropDuplicates { within_watermark: false, .. } => "drop_duplicates",
            Self::DropDuplicates { within_watermark: true, .. } => "drop_duplicates_within_watermark",
            Self::Distinct => "distinct",
            Self::OrderBy(_) => "order_by",
            Self::Limit(_) => "limit",
            Self::Alias(_) => "alias",
            Self::Map { .. } => "map_batches",
        }
    }
}
