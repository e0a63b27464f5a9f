//! The export of a component's sources, for whatever implements [`Plugin`].
#![allow(missing_docs, reason = "the items of a trait that is generated from wit/, where each has its document")]

use super::options::Options;
use super::run::RegisteredSource;
use crate::bindings::describing::millstream::plugin::types;
use crate::bindings::sources::exports::millstream::plugin::source;
use crate::bindings::{error, wire, wire_fields};
use crate::plugin::Plugin;

impl<P: Plugin> source::Guest for P {
    fn describe() -> Vec<source::SourceType> {
        crate::log::log_panics();
        let described = |registered: RegisteredSource| {
            let described = (registered.describe)();
            let option = |option: &super::SourceOption| source::SourceOption {
                name: option.name.to_owned(),
                required: option.required,
            };
            source::SourceType {
                name: described.name.to_owned(),
                columns: wire_fields(described.columns),
                options: described.options.iter().map(option).collect(),
            }
        };
        P::sources().into_iter().map(described).collect()
    }

    fn initial_offset(number: u32, options: source::Options) -> Result<String, types::Error> {
        (numbered::<P>(number)?.initial_offset)(&Options(options)).map_err(error)
    }

    fn latest_offset(
        number: u32,
        options: source::Options,
        start: String,
        limits: source::Limits,
    ) -> Result<String, types::Error> {
        let latest_offset = numbered::<P>(number)?.latest_offset;
        latest_offset(&Options(options), &start, limits.until.as_deref(), limits.max_rows).map_err(error)
    }

    fn read(
        number: u32,
        options: source::Options,
        start: String,
        end: String,
        cursor: Option<String>,
    ) -> Result<source::Page, types::Error> {
        let page = (numbered::<P>(number)?.read)(&Options(options), &start, &end, cursor.as_deref()).map_err(error)?;
        Ok(source::Page { rows: wire(page.rows), next: page.next })
    }

    fn commit(number: u32, options: source::Options, offset: String) -> Result<(), types::Error> {
        (numbered::<P>(number)?.commit)(&Options(options), &offset).map_err(error)
    }
}

fn numbered<P: Plugin>(number: u32) -> Result<RegisteredSource, types::Error> {
    crate::log::log_panics();
    let all = P::sources();
    let found = usize::try_from(number).ok().and_then(|number| all.get(number).copied());
    found.ok_or_else(|| types::Error::Internal(format!("no source {number}")))
}
