//! Makes file sources: options checked, schema found, log read.

use super::bucket::Bucket;
use super::config::{CleanSource, FileConfig, FileFormat};
use super::discovery::{self, SeenFolders};
use super::listing::{self, Lister};
use super::log::FileLog;
use super::seen::SeenFiles;
use super::source::FileSource;
use super::verdicts::Verdicts;
use crate::{Source, SourceContext, SourceError, SourceFactory, SourceSettings, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_client::store_options::with_host_options;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes file sources.
#[derive(Debug, Clone)]
pub struct FileSourceFactory {
    format: Option<FileFormat>,
    settings: SourceSettings,
    /// The folders that are columns, by what is looked at in an object store: looking is slow there, and what was found first
    /// holds.
    folders: Arc<Mutex<BTreeMap<LookedAt, SeenFolders>>>,
}

/// A location, below how many of its parts folders are columns, and whether they are at all.
type LookedAt = (String, usize, bool);

impl FileSourceFactory {
    /// For one format, or with `None` for the format that option `format` names.
    pub fn new(format: Option<FileFormat>) -> Self {
        Self { format, settings: SourceSettings::default(), folders: Arc::default() }
    }

    /// The configuration with its schema, and the bucket, if the files are objects.
    fn resolve(&self, spec: &SourceSpec) -> Result<(FileConfig, Option<Arc<Bucket>>), SourceError> {
        let mut config = FileConfig::new(spec, self.format)?;
        config.infers |= self.settings.schema_inference;
        let bucket = self.bucket(&config, spec)?;
        let folders = self.folders(&config, spec, bucket.as_ref())?;
        discovery::resolve(&mut config, spec, bucket.as_ref(), folders)?;
        Ok((config, bucket))
    }

    fn bucket(&self, config: &FileConfig, spec: &SourceSpec) -> Result<Option<Arc<Bucket>>, SourceError> {
        if !config.is_stored() {
            return Ok(None);
        }
        let own = config.store_options.clone();
        let options = with_host_options(&config.path, &self.settings.object_store, own);
        let bucket = Bucket::open(&config.path, &options).map_err(|source| SourceError::Unavailable {
            name: spec.name.clone(),
            action: "open",
            place: config.path.clone(),
            source,
        })?;
        Ok(Some(Arc::new(bucket)))
    }

    fn folders(
        &self,
        config: &FileConfig,
        spec: &SourceSpec,
        bucket: Option<&Arc<Bucket>>,
    ) -> Result<SeenFolders, SourceError> {
        if bucket.is_none() {
            return discovery::folders(&spec.name, config, bucket);
        }
        let looked_at = (config.path.clone(), config.base_depth, config.recursive);
        if let Some(known) = self.folders.lock().unwrap_or_else(PoisonError::into_inner).get(&looked_at) {
            return Ok(known.clone());
        }
        let found = discovery::folders(&spec.name, config, bucket)?;
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(looked_at, found.clone());
        Ok(found)
    }
}

impl SourceFactory for FileSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(self.resolve(spec)?.0.schema)
    }

    fn found_schema(&self, spec: &SourceSpec) -> Result<Option<SchemaRef>, SourceError> {
        let (config, _) = self.resolve(spec)?;
        let is_inferred = spec.schema.is_none() && config.format != FileFormat::Text;
        Ok((is_inferred || !config.partitions.is_empty()).then_some(config.schema))
    }

    fn with_settings(&self, settings: &SourceSettings) -> Option<Arc<dyn SourceFactory>> {
        Some(Arc::new(Self { format: self.format, settings: settings.clone(), folders: Arc::default() }))
    }

    /// The log has whole paths: elsewhere all files would be new, unless only their names count.
    fn place(&self, spec: &SourceSpec) -> Option<String> {
        let config = FileConfig::new(spec, self.format).ok()?;
        (!config.file_name_only).then_some(config.path)
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let (config, bucket) = self.resolve(spec)?;
        if bucket.is_none() && !discovery::is_there(&config) {
            return Err(SourceError::Unavailable {
                name: spec.name.clone(),
                action: "list",
                place: config.path,
                source: "it does not exist".into(),
            });
        }
        if config.clean != CleanSource::Off && listing::output_log(&spec.name, &config, bucket.as_ref())?.is_some() {
            let reason = "the folder is the output of a file sink, whose log would name files that are gone";
            let value = spec.options.get("cleanSource").unwrap_or_default();
            let owner = format!("source `{}`", spec.name);
            return Err(millstream_common::Options::invalid(&owner, "cleanSource", value, reason).into());
        }
        let log = FileLog::open(&spec.name, Arc::clone(&context.files), self.settings.batches_retained)?;
        let mut seen = SeenFiles::new(&config, log.forgotten_before_ms());
        log.all().for_each(|entry| seen.add(&entry.path, entry.timestamp));
        let too_old_ms = seen.purge();
        let verdicts = Verdicts::open(&spec.name, Arc::clone(&context.files))?;
        let lister = Lister::new(&spec.name, bucket.clone());
        Ok(Box::new(FileSource::new(
            spec.name.clone(),
            config,
            bucket,
            context,
            (log, seen, too_old_ms),
            (verdicts, lister),
        )))
    }
}
