//! Interface `source`: where rows come from, by ranges of offsets.

use wasmtime::component::{ComponentType, Lift, Lower};

use super::{Batch, Field, SOURCE};
use crate::export::{answers, export};

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct SourceOption {
    pub(crate) name: String,
    pub(crate) required: bool,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct SourceType {
    pub(crate) name: String,
    pub(crate) columns: Vec<Field>,
    pub(crate) options: Vec<SourceOption>,
}

/// The options of a stream, on their way to a guest.
pub(crate) type OptionsRef<'a> = &'a [(String, String)];

/// How far a batch may go, on its way to a guest.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct LimitsRef<'a> {
    pub(crate) until: Option<&'a str>,
    #[component(name = "max-rows")]
    pub(crate) max_rows: Option<u64>,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Page {
    pub(crate) rows: Batch,
    pub(crate) next: Option<String>,
}

export! {
    /// `source.describe`: what sources there are.
    DescribeSources = SOURCE, "describe", () -> Vec<SourceType>;
}

answers! {
    /// `source.initial-offset`: source number, options.
    InitialOffset = SOURCE, "initial-offset", (u32, OptionsRef<'a>) -> String;
    /// `source.latest-offset`: source number, options, start, limits.
    LatestOffset = SOURCE, "latest-offset", (u32, OptionsRef<'a>, &'a str, LimitsRef<'a>) -> String;
    /// `source.read`: source number, options, start, end, cursor.
    ReadPage = SOURCE, "read", (u32, OptionsRef<'a>, &'a str, &'a str, Option<&'a str>) -> Page;
    /// `source.commit`: source number, options, offset.
    CommitOffset = SOURCE, "commit", (u32, OptionsRef<'a>, &'a str) -> ();
}
