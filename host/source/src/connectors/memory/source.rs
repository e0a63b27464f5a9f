//! Handles of memory streams, and the source over a handle.

use super::config;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stream of rows that the program adds. Clones share the rows.
#[derive(Debug, Clone)]
pub struct MemoryStream {
    schema: SchemaRef,
    units: Arc<Mutex<Units>>,
}

#[derive(Debug, Default)]
struct Units {
    /// The offset of the first unit that is kept.
    first: i64,
    kept: VecDeque<RecordBatch>,
}

impl Units {
    /// The offset of the newest unit; -1 when there is none.
    fn last(&self) -> i64 {
        self.first + self.kept.len() as i64 - 1
    }
}

impl MemoryStream {
    /// A stream without rows.
    pub fn new(schema: SchemaRef) -> Self {
        Self { schema, units: Arc::default() }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds a unit, which may be empty; answers its offset.
    ///
    /// # Errors
    /// When the columns are not those of the stream.
    pub fn add_data(&self, rows: RecordBatch) -> Result<Offset, SourceError> {
        let same = rows.schema().fields().iter().map(|field| (field.name(), field.data_type())).eq(self
            .schema
            .fields()
            .iter()
            .map(|field| (field.name(), field.data_type())));
        if !same {
            let reason = format!("the rows have columns {:?}, not {:?}", names(&rows.schema()), names(&self.schema));
            return Err(SourceError::Schema { name: "memory".into(), reason });
        }
        let rows = rows
            .with_schema(Arc::clone(&self.schema))
            .map_err(|error| SourceError::Schema { name: "memory".into(), reason: error.to_string() })?;
        let mut units = self.lock();
        units.kept.push_back(rows);
        Ok(units.last().into())
    }

    /// The offset of the newest unit; `None` before the first.
    pub fn latest(&self) -> Option<Offset> {
        let last = self.lock().last();
        (last >= 0).then(|| last.into())
    }

    /// Drops the units up to and including `end`: no query will ask for them again.
    ///
    /// # Errors
    /// When `end` is no offset of a memory stream.
    pub fn forget(&self, end: &Offset) -> Result<(), SourceError> {
        let end = end.number("memory")?;
        let mut units = self.lock();
        while units.first <= end && units.kept.pop_front().is_some() {
            units.first += 1;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Units> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
}

impl SourceFactory for MemoryStream {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        config::limit(spec)?;
        Ok(Arc::clone(&self.schema))
    }

    fn open(&self, spec: &SourceSpec, _context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let limit = config::limit(spec)?;
        Ok(Box::new(MemorySource { name: spec.name.clone(), stream: self.clone(), limit, frozen: None }))
    }
}

/// Memory streams by the name of the source: one factory for all streams of a program. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStreams {
    streams: Arc<Mutex<BTreeMap<String, MemoryStream>>>,
}

impl MemoryStreams {
    /// No streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the stream that sources called `name` read, replacing an older one.
    pub fn create(&self, name: &str, schema: SchemaRef) -> MemoryStream {
        let stream = MemoryStream::new(schema);
        self.add(name, stream.clone());
        stream
    }

    /// Lets sources called `name` read `stream`.
    pub fn add(&self, name: &str, stream: MemoryStream) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), stream);
    }

    fn find(&self, spec: &SourceSpec) -> Result<MemoryStream, SourceError> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.get(&spec.name).cloned().ok_or_else(|| SourceError::Schema {
            name: spec.name.clone(),
            reason: "there is no memory stream of this name: create it before the query".into(),
        })
    }
}

impl SourceFactory for MemoryStreams {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        SourceFactory::schema(&self.find(spec)?, spec)
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        self.find(spec)?.open(spec, context)
    }
}

struct MemorySource {
    name: String,
    stream: MemoryStream,
    limit: ReadLimit,
    /// The last offset, once everything available was fixed.
    frozen: Option<i64>,
}

impl MemorySource {
    fn start(&self, start: Option<&Offset>) -> Result<i64, SourceError> {
        start.map_or(Ok(-1), |offset| offset.number(&self.name))
    }
}

impl Source for MemorySource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.stream.schema)
    }

    fn description(&self) -> String {
        format!("MemoryStream[{}]", self.name)
    }

    fn read_limit(&self) -> ReadLimit {
        self.limit
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.start(start)?;
        let units = self.stream.lock();
        let last = self.frozen.unwrap_or(i64::MAX).min(units.last());
        if from >= last {
            return Ok(start.cloned());
        }
        let measure = |unit: &RecordBatch| match limit {
            ReadLimit::AllAvailable => 0,
            ReadLimit::MaxFiles(_) => 1,
            ReadLimit::MaxRows(_) => unit.num_rows() as u64,
            ReadLimit::MaxBytes(_) => unit.get_array_memory_size() as u64,
        };
        let most = match limit {
            ReadLimit::AllAvailable => u64::MAX,
            ReadLimit::MaxFiles(most) | ReadLimit::MaxRows(most) | ReadLimit::MaxBytes(most) => most,
        };
        let (mut end, mut sum) = (from, 0_u64);
        while end < last {
            let at = usize::try_from(end + 1 - units.first).ok();
            sum = sum.saturating_add(at.and_then(|at| units.kept.get(at)).map_or(0, measure));
            if sum > most && end > from {
                break;
            }
            end += 1;
        }
        Ok(Some(end.into()))
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        self.stream.latest()
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (from, to) = (self.start(start)?, end.number(&self.name)?);
        let units = self.stream.lock();
        if from < to && (from + 1 < units.first || to > units.last()) {
            return Err(SourceError::Lost {
                name: self.name.clone(),
                range: format!("({from}, {to}]"),
                reason: format!("the stream holds units {} to {}", units.first, units.last()),
            });
        }
        let mut batches = Vec::new();
        for number in from + 1..=to {
            let unit = &units.kept[(number - units.first) as usize];
            if unit.num_rows() > 0 {
                batches.push(
                    unit.project(projection)
                        .map_err(|error| SourceError::Schema { name: self.name.clone(), reason: error.to_string() })?,
                );
            }
        }
        Ok(if batches.is_empty() { vec![] } else { vec![batches] })
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.frozen = Some(self.stream.lock().last());
        Ok(())
    }
}
