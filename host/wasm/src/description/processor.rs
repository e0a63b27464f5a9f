//! Processors as a component told of them → checked signatures.

use super::aggregate::check_state_id;
use super::fields::{check_identifier, fields};
use crate::processor::{ProcessorSignature, TimeMode, VariableKind, VariableSignature};
use crate::wire::{self, processor as told};
use arrow::datatypes::Fields;
use millstream_common::OutputMode;
use std::collections::HashSet;

/// Variables that one processor may have.
const VARIABLES: usize = 256;
/// The longest time to live, in milliseconds: ten thousand years.
const TTL_MS: u64 = 10_000 * 365 * 24 * 3600 * 1000;

/// The signature of one processor.
pub(super) fn signature(processor: told::ProcessorType) -> Result<ProcessorSignature, String> {
    let columns = |what: &str, nodes: &[wire::Field]| columns(nodes).map_err(|reason| format!("{what}: {reason}"));
    let time_mode = match processor.time_mode {
        told::TimeMode::None => TimeMode::None,
        told::TimeMode::ProcessingTime => TimeMode::ProcessingTime,
        told::TimeMode::EventTime => TimeMode::EventTime,
    };
    let key = columns("key", &processor.key)?;
    if key.is_empty() {
        return Err("it has no key".to_owned());
    }
    let output = columns("output", &processor.output)?;
    if output.is_empty() {
        return Err("it has no output columns".to_owned());
    }
    if processor.variables.len() > VARIABLES {
        return Err(format!("it has {} variables, more than {VARIABLES}", processor.variables.len()));
    }
    let mut names = HashSet::new();
    let mut variables = Vec::with_capacity(processor.variables.len());
    for variable in processor.variables {
        check_identifier(&variable.name).map_err(|reason| format!("variable {reason}"))?;
        if !names.insert(variable.name.clone()) {
            return Err(format!("variable `{}` is there twice", variable.name));
        }
        let name = variable.name.clone();
        variables.push(self::variable(variable, time_mode).map_err(|reason| format!("variable `{name}`: {reason}"))?);
    }
    let modes = [
        (told::OutputModes::APPEND, OutputMode::Append),
        (told::OutputModes::UPDATE, OutputMode::Update),
        (told::OutputModes::COMPLETE, OutputMode::Complete),
    ];
    let said = processor.output_modes;
    let output_modes: Vec<OutputMode> =
        modes.into_iter().filter(|(flag, _)| (said & *flag) == *flag).map(|(_, mode)| mode).collect();
    if output_modes.is_empty() {
        return Err("it may have no output mode".to_owned());
    }
    Ok(ProcessorSignature {
        name: processor.name,
        key,
        input: columns("input", &processor.input)?,
        output,
        initial: columns("initial", &processor.initial)?,
        variables,
        time_mode,
        output_modes,
    })
}

fn variable(variable: told::Variable, time_mode: TimeMode) -> Result<VariableSignature, String> {
    let kind = match variable.kind {
        told::VariableKind::Value => VariableKind::Value,
        told::VariableKind::List => VariableKind::List,
        told::VariableKind::Map => VariableKind::Map,
    };
    let map_key = columns(&variable.map_key).map_err(|reason| format!("map key: {reason}"))?;
    let of_rows = columns(&variable.columns)?;
    match kind {
        VariableKind::Map if map_key.is_empty() => return Err("it is a map without columns for its keys".to_owned()),
        VariableKind::Value | VariableKind::List if !map_key.is_empty() => {
            return Err(format!("it is a {kind} and has columns for map keys"));
        }
        _ if of_rows.is_empty() => return Err("it has no columns".to_owned()),
        _ => {}
    }
    if let Some(twice) = map_key.iter().find(|key| of_rows.find(key.name()).is_some()) {
        return Err(format!("`{}` is a column of its map keys and of its rows", twice.name()));
    }
    check_state_id(&variable.state_id)?;
    let ttl_ms = match variable.ttl_ms {
        None => None,
        Some(_) if time_mode != TimeMode::ProcessingTime => {
            return Err(format!(
                "it has a time to live, and the processor goes by {time_mode}, not by processing time"
            ));
        }
        Some(ttl) if ttl == 0 || ttl > TTL_MS => return Err(format!("its time to live of {ttl} ms is out of range")),
        Some(ttl) => Some(i64::try_from(ttl).map_err(|_| format!("its time to live of {ttl} ms is out of range"))?),
    };
    let (name, state_id) = (variable.name, variable.state_id);
    Ok(VariableSignature { name, kind, map_key, columns: of_rows, state_id, ttl_ms })
}

fn columns(nodes: &[wire::Field]) -> Result<Fields, String> {
    Ok(Fields::from(fields(nodes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> wire::Field {
        wire::Field { name: name.into(), format: "l".into(), nullable: true, children: 0 }
    }

    fn variable(name: &str, kind: told::VariableKind) -> told::Variable {
        let map_key = if kind == told::VariableKind::Map { vec![field("m")] } else { vec![] };
        told::Variable {
            name: name.into(),
            kind,
            map_key,
            columns: vec![field("v")],
            state_id: "1".into(),
            ttl_ms: None,
        }
    }

    fn processor(variables: Vec<told::Variable>) -> told::ProcessorType {
        told::ProcessorType {
            name: "f".into(),
            key: vec![field("k")],
            input: vec![field("n")],
            output: vec![field("n")],
            initial: vec![],
            variables,
            time_mode: told::TimeMode::EventTime,
            output_modes: told::OutputModes::APPEND | told::OutputModes::UPDATE,
        }
    }

    #[test]
    fn a_processor_is_described_by_its_columns_variables_and_modes() {
        let list = variable("log", told::VariableKind::List);
        let described = signature(processor(vec![list, variable("last", told::VariableKind::Map)])).unwrap();
        assert_eq!(
            described.to_string(),
            "processor f(n Int64) by (k Int64) -> (n Int64), event time, log list(v Int64) `1`, last map(m Int64 -> v Int64) `1`"
        );
        assert_eq!(described.output_modes, [OutputMode::Append, OutputMode::Update]);
    }

    #[test]
    fn lies_are_refused_with_their_place() {
        let reason = |processor| signature(processor).unwrap_err();
        let value = || variable("v", told::VariableKind::Value);
        assert!(reason(processor(vec![value(), value()])).contains("`v` is there twice"));
        assert!(reason(processor(vec![variable("V", told::VariableKind::Value)])).contains("lower-case"));
        let keyed = told::Variable { map_key: vec![field("m")], ..value() };
        assert!(reason(processor(vec![keyed])).contains("columns for map keys"));
        let bare = told::Variable { map_key: vec![], ..variable("m", told::VariableKind::Map) };
        assert!(reason(processor(vec![bare])).contains("without columns for its keys"));
        let same = told::Variable { map_key: vec![field("v")], ..variable("m", told::VariableKind::Map) };
        assert!(reason(processor(vec![same])).contains("`v` is a column of its map keys"));
        let ttl = told::Variable { ttl_ms: Some(1), ..value() };
        assert!(reason(processor(vec![ttl.clone()])).contains("not by processing time"));
        let of_clock = |ttl_ms| told::ProcessorType {
            time_mode: told::TimeMode::ProcessingTime,
            ..processor(vec![told::Variable { ttl_ms, ..value() }])
        };
        assert!(signature(of_clock(Some(1))).is_ok());
        assert!(reason(of_clock(Some(0))).contains("out of range"));
        assert!(reason(of_clock(Some(u64::MAX))).contains("out of range"));
        let many = (0..300).map(|number| variable(&format!("v{number}"), told::VariableKind::Value)).collect();
        assert!(reason(processor(many)).contains("more than 256"));
        assert!(reason(told::ProcessorType { key: vec![], ..processor(vec![]) }).contains("no key"));
        assert!(reason(told::ProcessorType { output: vec![], ..processor(vec![]) }).contains("no output"));
        let modes = told::ProcessorType { output_modes: told::OutputModes::default(), ..processor(vec![]) };
        assert!(reason(modes).contains("no output mode"));
    }
}
