//! The exports of a component, for whatever implements [`Plugin`]: one world per kind, so that a component exports what
//! it has and nothing else.
#![allow(missing_docs, reason = "generated from wit/, where every item has its document")]
#![allow(unsafe_code, unreachable_pub, reason = "generated: the canonical ABI")]

use crate::call::{Batch, Call, Function};
use crate::error::CallError;
use crate::plugin::Plugin;
use crate::schema::Schema;

/// What every component has.
pub mod describing {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world describing {
                import millstream:plugin/log@0.2.0;
                export millstream:plugin/describe@0.2.0;
            }
        ",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_describe",
        default_bindings_module: "millstream_sdk::private::bindings::describing",
    });
}

/// Scalar and table functions.
pub mod functions {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world functions {
                export millstream:plugin/scalar@0.2.0;
                export millstream:plugin/table@0.2.0;
            }
        ",
        with: { "millstream:plugin/types@0.2.0": crate::bindings::describing::millstream::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_functions",
        default_bindings_module: "millstream_sdk::private::bindings::functions",
    });
}

/// Aggregate functions.
pub mod aggregates {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world aggregates {
                export millstream:plugin/aggregate@0.2.0;
            }
        ",
        with: { "millstream:plugin/types@0.2.0": crate::bindings::describing::millstream::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_aggregates",
        default_bindings_module: "millstream_sdk::private::bindings::aggregates",
    });
}

/// Stateful processors.
pub mod processors {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world processors {
                export millstream:plugin/processor@0.2.0;
            }
        ",
        with: { "millstream:plugin/types@0.2.0": crate::bindings::describing::millstream::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_processors",
        default_bindings_module: "millstream_sdk::private::bindings::processors",
    });
}

/// Sources.
pub mod sources {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world sources {
                export millstream:plugin/source@0.2.0;
            }
        ",
        with: { "millstream:plugin/types@0.2.0": crate::bindings::describing::millstream::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_sources",
        default_bindings_module: "millstream_sdk::private::bindings::sources",
    });
}

/// What is granted by name. A component imports what of it is called.
pub mod granted {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world granted {
                import millstream:plugin/config@0.2.0;
                import millstream:plugin/clock@0.2.0;
                import millstream:plugin/random@0.2.0;
                import millstream:plugin/http@0.2.0;
            }
        ",
        generate_all,
    });
}

/// Migrations of stored state.
pub mod migrations {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package millstream:sdk;
            world migrations {
                export millstream:plugin/migration@0.2.0;
            }
        ",
        with: { "millstream:plugin/types@0.2.0": crate::bindings::describing::millstream::plugin::types },
        pub_export_macro: true,
        export_macro_name: "export_migrations",
        default_bindings_module: "millstream_sdk::private::bindings::migrations",
    });
}

use aggregates::exports::millstream::plugin::aggregate;
use describing::exports::millstream::plugin::describe;
use describing::millstream::plugin::types;
use functions::exports::millstream::plugin::{scalar, table};
use migrations::exports::millstream::plugin::migration;

fn fields(fill: fn(&mut Schema)) -> Vec<types::Field> {
    let mut schema = Schema::default();
    fill(&mut schema);
    wire_fields(schema.fields)
}

pub(crate) fn wire_fields(fields: Vec<crate::schema::Field>) -> Vec<types::Field> {
    let field = |field: crate::schema::Field| types::Field {
        name: field.name,
        format: field.format,
        nullable: field.nullable,
        children: field.children,
    };
    fields.into_iter().map(field).collect()
}

pub(crate) fn error(error: CallError) -> types::Error {
    match error {
        CallError::InvalidInput(message) => types::Error::InvalidInput(message),
        CallError::Unavailable(message) => types::Error::Unavailable(message),
        CallError::Internal(message) => types::Error::Internal(message),
    }
}

pub(crate) fn row_errors(errors: Vec<(u32, String)>) -> Vec<types::RowError> {
    errors.into_iter().map(|(row, message)| types::RowError { row, message }).collect()
}

pub(crate) fn batch(batch: types::Batch) -> Batch {
    Batch { rows: batch.rows, buffers: batch.buffers }
}

pub(crate) fn wire(batch: Batch) -> types::Batch {
    types::Batch { rows: batch.rows, buffers: batch.buffers }
}

/// Number `number` of a kind.
fn numbered<T>(all: &'static [&'static T], number: u32) -> Result<&'static T, types::Error> {
    let found = usize::try_from(number).ok().and_then(|number| all.get(number));
    found.copied().ok_or_else(|| types::Error::Internal(format!("no function {number}")))
}

impl<P: Plugin> describe::Guest for P {
    fn describe() -> Vec<describe::Function> {
        crate::log::log_panics();
        let function = |function: &&Function| describe::Function {
            name: function.name.to_owned(),
            kind: match function.call {
                Call::Scalar(_) => describe::Kind::Scalar,
                Call::Table(_) => describe::Kind::Table,
            },
            arguments: fields(function.arguments),
            results: fields(function.results),
            volatility: match function.volatile {
                true => describe::Volatility::Volatile,
                false => describe::Volatility::Immutable,
            },
            nulls: types::Nulls::Passed,
        };
        P::FUNCTIONS.iter().map(function).collect()
    }
}

impl<P: Plugin> scalar::Guest for P {
    fn call(number: u32, arguments: types::Batch) -> Result<scalar::ScalarOutput, types::Error> {
        crate::log::log_panics();
        let Call::Scalar(call) = numbered(P::FUNCTIONS, number)?.call else {
            return Err(types::Error::Internal(format!("function {number} is no scalar")));
        };
        let output = call(&batch(arguments)).map_err(error)?;
        Ok(scalar::ScalarOutput { values: wire(output.values), row_errors: row_errors(output.row_errors) })
    }
}

impl<P: Plugin> table::Guest for P {
    fn call(number: u32, arguments: types::Batch) -> Result<table::TableOutput, types::Error> {
        crate::log::log_panics();
        let Call::Table(call) = numbered(P::FUNCTIONS, number)?.call else {
            return Err(types::Error::Internal(format!("function {number} is no table function")));
        };
        let output = call(&batch(arguments)).map_err(error)?;
        Ok(table::TableOutput {
            input_rows: output.input_rows,
            rows: wire(output.rows),
            row_errors: row_errors(output.row_errors),
        })
    }
}

fn states(output: crate::aggregate::StatesOutput) -> aggregate::StatesOutput {
    aggregate::StatesOutput { states: wire(output.states), row_errors: row_errors(output.row_errors) }
}

impl<P: Plugin> aggregate::Guest for P {
    fn describe() -> Vec<aggregate::AggregateFunction> {
        crate::log::log_panics();
        let function = |function: &&crate::aggregate::Aggregate| aggregate::AggregateFunction {
            name: function.name.to_owned(),
            arguments: fields(function.arguments),
            result: fields(function.result),
            state: fields(function.state),
            state_id: function.state_id.to_owned(),
            nulls: types::Nulls::Passed,
            retracts: function.retract.is_some(),
        };
        P::AGGREGATES.iter().map(function).collect()
    }

    fn accumulate(
        number: u32,
        groups: u32,
        group_of_row: Vec<u8>,
        arguments: types::Batch,
    ) -> Result<aggregate::StatesOutput, types::Error> {
        crate::log::log_panics();
        let accumulate = numbered(P::AGGREGATES, number)?.accumulate;
        accumulate(groups, &group_of_row, &batch(arguments)).map(states).map_err(error)
    }

    fn merge(
        number: u32,
        groups: u32,
        group_of_row: Vec<u8>,
        merged: types::Batch,
    ) -> Result<aggregate::StatesOutput, types::Error> {
        crate::log::log_panics();
        let merge = numbered(P::AGGREGATES, number)?.merge;
        merge(groups, &group_of_row, &batch(merged)).map(states).map_err(error)
    }

    fn retract(
        number: u32,
        from: types::Batch,
        group_of_row: Vec<u8>,
        arguments: types::Batch,
    ) -> Result<aggregate::StatesOutput, types::Error> {
        crate::log::log_panics();
        let Some(retract) = numbered(P::AGGREGATES, number)?.retract else {
            return Err(types::Error::Internal(format!("aggregate function {number} does not retract")));
        };
        retract(&batch(from), &group_of_row, &batch(arguments)).map(states).map_err(error)
    }

    fn evaluate(number: u32, evaluated: types::Batch) -> Result<aggregate::ResultsOutput, types::Error> {
        crate::log::log_panics();
        let evaluate = numbered(P::AGGREGATES, number)?.evaluate;
        let output = evaluate(&batch(evaluated)).map_err(error)?;
        Ok(aggregate::ResultsOutput { values: wire(output.values), row_errors: row_errors(output.row_errors) })
    }
}

impl<P: Plugin> migration::Guest for P {
    fn describe() -> Vec<migration::Step> {
        crate::log::log_panics();
        let step = |step: &&crate::migration::Migration| migration::Step {
            state: step.state.to_owned(),
            from_id: step.from_id.to_owned(),
            from_columns: fields(step.from_columns),
            to_id: step.to_id.to_owned(),
            to_columns: fields(step.to_columns),
        };
        P::MIGRATIONS.iter().map(step).collect()
    }

    fn migrate(number: u32, _keys: types::Batch, rows: types::Batch) -> Result<migration::Migrated, types::Error> {
        crate::log::log_panics();
        let migrate = numbered(P::MIGRATIONS, number)?.migrate;
        let output = migrate(&batch(rows)).map_err(error)?;
        Ok(migration::Migrated { rows: wire(output.states), row_errors: row_errors(output.row_errors) })
    }
}
