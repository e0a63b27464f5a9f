//! `CREATE FUNCTION … USING COMPONENT` in a session: plugins of the session from then on, as in Spark.
//!
//! A component becomes one plugin, by the name of its file or package, with the default limits. Paths are relative to where
//! the program runs. [`Session::register_plugin`] does the same with other limits.

use super::Session;
use crate::{PluginSpec, RuntimeError};
use millstream_package::PackageReference;
use millstream_plan::CreateFunction;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::path::Path;

impl Session {
    /// Makes plugins of the components that statements in front of a query name.
    ///
    /// # Errors
    /// When a file is no component, a component has no such function, or another one has the plugin's name.
    pub(super) fn create_functions(&self, functions: &[CreateFunction]) -> Result<(), RuntimeError> {
        for CreateFunction { name, component: file } in functions {
            let invalid = |reason: String, hint: Option<String>| RuntimeError::Invalid { reason, hint };
            let reference = file.parse::<PackageReference>().ok();
            let stem = match &reference {
                Some(reference) => reference.name(),
                None => Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(),
            };
            let bytes = self.packages().component(file).map_err(|error| {
                let hint = millstream_common::Hint::hint(&error);
                invalid(millstream_common::describe_chain(&error), hint)
            })?;
            let component = self.plugin_host()?.load(stem, &bytes)?;
            let known = component.names();
            if !known.iter().any(|function| function.eq_ignore_ascii_case(name)) {
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(invalid(
                    format!("the component `{file}` has no function `{name}`"),
                    Some(format!("it has {known}")),
                ));
            }
            match self.plugins().into_iter().find(|plugin| plugin.name == stem) {
                Some(plugin) if plugin.digest() == component.digest() => {}
                Some(_) => {
                    return Err(invalid(
                        format!("another component is the plugin `{stem}` of this session"),
                        Some("a plugin has the name of its file: give the file another one".into()),
                    ));
                }
                None => self.register_plugin(PluginSpec {
                    name: stem.to_owned(),
                    component: bytes,
                    limits: PluginLimits::default(),
                    on_fault: FaultPolicy::default(),
                }),
            }
        }
        Ok(())
    }
}
