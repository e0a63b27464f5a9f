//! The exports of a component's sinks, for whatever implements [`Plugin`].
#![allow(missing_docs, reason = "the items of a trait that is generated from wit/, where each has its document")]

use super::run::{RegisteredSink, Session};
use super::{OutputMode, Target};
use crate::bindings::describing::millstream::plugin::types;
use crate::bindings::sinks::exports::millstream::plugin::sink;
use crate::bindings::transactions::exports::millstream::plugin::sink_transaction;
use crate::bindings::{batch, error, row_errors, wire_fields};
use crate::plugin::Plugin;
use crate::schema::Field;
use std::cell::RefCell;

thread_local! {
    /// What was opened and is not closed.
    static OPEN: RefCell<Option<Box<dyn Session>>> = const { RefCell::new(None) };
}

fn numbered<P: Plugin>(number: u32) -> Result<RegisteredSink, types::Error> {
    let found = usize::try_from(number).ok().and_then(|number| P::sinks().get(number).copied());
    found.ok_or_else(|| types::Error::Internal(format!("no sink {number}")))
}

/// Does something with what is open.
fn with_open<T>(call: impl FnOnce(&mut dyn Session) -> Result<T, types::Error>) -> Result<T, types::Error> {
    OPEN.with_borrow_mut(|open| match open {
        Some(session) => call(session.as_mut()),
        None => Err(types::Error::Internal("nothing is open".into())),
    })
}

impl<P: Plugin> sink::Guest for P {
    fn describe() -> Vec<sink::SinkType> {
        crate::log::log_panics();
        let described = |registered: RegisteredSink| {
            let described = (registered.describe)();
            let modes = described.modes.iter().fold(sink::SinkModes::empty(), |modes, mode| {
                modes
                    | match mode {
                        OutputMode::Append => sink::SinkModes::APPEND,
                        OutputMode::Update => sink::SinkModes::UPDATE,
                        OutputMode::Complete => sink::SinkModes::COMPLETE,
                    }
            });
            let options = described.options.iter();
            sink::SinkType {
                name: described.name.to_owned(),
                columns: wire_fields(described.columns),
                modes,
                options: options
                    .map(|option| sink::SinkOption { name: option.name.to_owned(), required: option.required })
                    .collect(),
            }
        };
        P::sinks().into_iter().map(described).collect()
    }

    fn open(
        number: u32,
        target: types::SinkTarget,
        mode: sink::SinkMode,
        columns: Vec<types::Field>,
    ) -> Result<bool, types::Error> {
        crate::log::log_panics();
        let mut session = (numbered::<P>(number)?.begin)();
        let mode = match mode {
            sink::SinkMode::Append => OutputMode::Append,
            sink::SinkMode::Update => OutputMode::Update,
            sink::SinkMode::Complete => OutputMode::Complete,
        };
        let field = |field: types::Field| Field {
            name: field.name,
            format: field.format,
            nullable: field.nullable,
            children: field.children,
        };
        let types::SinkTarget { query_id, partition, batch, options } = target;
        let target = Target { query_id, partition, batch, options };
        let wanted = session.open(&target, mode, columns.into_iter().map(field).collect()).map_err(error)?;
        OPEN.set(Some(session));
        Ok(wanted)
    }

    fn process(rows: types::Batch) -> Result<Vec<types::RowError>, types::Error> {
        with_open(|session| session.process(&batch(rows)).map(row_errors).map_err(error))
    }

    fn close(failure: Option<String>) -> Result<(), types::Error> {
        let closed = with_open(|session| session.close(failure.as_deref()).map_err(error));
        OPEN.set(None);
        closed
    }
}

impl<P: Plugin> sink_transaction::Guest for P {
    fn prepare() -> Result<Vec<u8>, types::Error> {
        with_open(|session| session.prepare().map_err(error))
    }

    fn commit(number: u32, target: types::SinkTarget, token: Vec<u8>) -> Result<(), types::Error> {
        settle::<P>(number, target, &token, true)
    }

    fn abort(number: u32, target: types::SinkTarget, token: Vec<u8>) -> Result<(), types::Error> {
        settle::<P>(number, target, &token, false)
    }
}

fn settle<P: Plugin>(number: u32, target: types::SinkTarget, token: &[u8], commits: bool) -> Result<(), types::Error> {
    crate::log::log_panics();
    let Some((commit, abort)) = numbered::<P>(number)?.settle else {
        return Err(types::Error::Internal(format!("sink {number} has no transaction")));
    };
    let types::SinkTarget { query_id, partition, batch, options } = target;
    let settle = if commits { commit } else { abort };
    settle(&Target { query_id, partition, batch, options }, token).map_err(error)
}
