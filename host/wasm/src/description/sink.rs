//! Sinks as a component told of them → checked signatures.

use super::fields::{fields, shown};
use crate::signature::{SinkOption, SinkSignature};
use crate::wire::sink as told;
use millstream_common::OutputMode;
use std::collections::HashSet;

/// Options that one sink may know.
const OPTIONS: usize = 256;
/// Names of options that are the host's.
const RESERVED: [&str; 3] = ["plugin", "sink", "partitions"];
/// Bytes that the name of an option may have.
const NAME: usize = 128;

/// The signature of one sink; `transactional` says whether the component has the second interface.
pub(super) fn signature(sink: told::SinkType, transactional: bool) -> Result<SinkSignature, String> {
    let modes = [
        (told::SinkModes::APPEND, OutputMode::Append),
        (told::SinkModes::UPDATE, OutputMode::Update),
        (told::SinkModes::COMPLETE, OutputMode::Complete),
    ];
    let modes: Vec<OutputMode> =
        modes.into_iter().filter(|(flag, _)| (sink.modes & *flag) == *flag).map(|(_, mode)| mode).collect();
    if modes.is_empty() {
        return Err("it takes no output mode".to_owned());
    }
    if sink.options.len() > OPTIONS {
        return Err(format!("it has {} options, more than {OPTIONS}", sink.options.len()));
    }
    let mut names = HashSet::new();
    let mut options = Vec::with_capacity(sink.options.len());
    for told::SinkOption { name, required } in sink.options {
        let fits = !name.is_empty() && name.len() <= NAME && name.chars().all(|c| !c.is_control() && c != ' ');
        if !fits {
            return Err(format!("option `{}` is empty, too long or has blanks", shown(&name)));
        }
        if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
            return Err(format!("option `{name}` has a name that the host takes for itself"));
        }
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(format!("option `{name}` is there twice"));
        }
        options.push(SinkOption { name, required });
    }
    let columns = fields(&sink.columns).map_err(|reason| format!("columns: {reason}"))?;
    Ok(SinkSignature { name: sink.name, columns, modes, options, transactional })
}
