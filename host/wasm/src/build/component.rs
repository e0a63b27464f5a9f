//! Core module → component.

use std::path::Path;

use super::BuildError;
use super::files::{failed, write};

/// Wraps a core module as a component.
///
/// # Errors
///
/// [`BuildError::Componentize`] when the module does not fit the world it was compiled for.
pub fn componentize(module: &Path, component: &Path) -> Result<(), BuildError> {
    let bytes = std::fs::read(module).map_err(failed(module))?;
    let encoded = encode(&bytes)
        .map_err(|reason| BuildError::Componentize { module: module.to_owned(), reason: reason.to_string() })?;
    write(component, &encoded)
}

fn encode(module: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut encoder = wit_component::ComponentEncoder::default();
    Ok(encoder.validate(true).module(module)?.encode()?)
}
