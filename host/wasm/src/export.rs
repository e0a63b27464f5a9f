//! What a component may export: every function of every interface that this host calls, with its types.
//!
//! The gate looks for [`INTERFACES`] in a component and checks their types; an instance is entered through an
//! [`Export`], which says where it is, what goes in and what comes out. A new kind of plugin is a file in
//! [`crate::wire`] and a line in [`INTERFACES`].
//!
//! Rule of its life: an interface is exported whole or not at all.
//!
//! It calls nothing.

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, ComponentNamedList, Func, Lift, Lower};

use crate::limits::HostState;
use crate::wire::aggregate::{Accumulate, DescribeAggregates, Evaluate, Merge, Retract};
use crate::wire::function::{CallScalar, CallTable, DescribeFunctions};
use crate::wire::migration::{DescribeSteps, Migrate};
use crate::wire::processor::{DescribeProcessors, Expire, Initialise, Process};
use crate::wire::source::{CommitOffset, DescribeSources, InitialOffset, LatestOffset, ReadPage};
use crate::wire::{self, CallError};

/// A function of one of our interfaces.
pub(crate) trait Export {
    /// The interface's name.
    const INTERFACE: &'static str;
    /// The function's name.
    const NAME: &'static str;
    /// What goes in.
    type Params<'a>: ComponentNamedList + Lower + Copy;
    /// What comes back over the boundary.
    type Results: ComponentNamedList + Lift + Send + Sync + 'static;
    /// What the guest answers when it does not refuse.
    type Output;

    /// The answer.
    ///
    /// # Errors
    ///
    /// The guest's refusal of the whole call.
    fn output(results: Self::Results) -> Result<Self::Output, CallError>;
}

/// Declares exports that cannot refuse.
macro_rules! export {
    ($($(#[$doc:meta])* $name:ident = $interface:expr, $function:literal, ($($param:ty),*) -> $output:ty;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::export::Export for $name {
            const INTERFACE: &'static str = $interface;
            const NAME: &'static str = $function;
            type Params<'a> = ($($param,)*);
            type Results = ($output,);
            type Output = $output;

            fn output((output,): Self::Results) -> Result<$output, $crate::wire::CallError> {
                Ok(output)
            }
        }
    )*};
}

/// Declares exports that answer with an output or an error.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident = $interface:expr, $function:literal, ($($param:ty),*) -> $output:ty;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::export::Export for $name {
            const INTERFACE: &'static str = $interface;
            const NAME: &'static str = $function;
            type Params<'a> = ($($param,)*);
            type Results = (Result<$output, $crate::wire::CallError>,);
            type Output = $output;

            fn output((output,): Self::Results) -> Result<$output, $crate::wire::CallError> {
                output
            }
        }
    )*};
}

pub(crate) use {answers, export};

/// One interface that a component may export.
pub(crate) struct Interface {
    name: &'static str,
    functions: &'static [Declared],
}

struct Declared {
    name: &'static str,
    check: fn(&Func, &Store<HostState>) -> wasmtime::Result<()>,
}

const fn declared<E: Export>() -> Declared {
    Declared { name: E::NAME, check: check::<E> }
}

fn check<E: Export>(func: &Func, store: &Store<HostState>) -> wasmtime::Result<()> {
    func.typed::<E::Params<'_>, E::Results>(store).map(drop)
}

/// The interfaces that this host calls. Every component has the first one, and at least one of the others.
pub(crate) static INTERFACES: [Interface; 7] = [
    Interface { name: wire::DESCRIBE, functions: &[declared::<DescribeFunctions>()] },
    Interface { name: wire::SCALAR, functions: &[declared::<CallScalar>()] },
    Interface { name: wire::TABLE, functions: &[declared::<CallTable>()] },
    Interface {
        name: wire::AGGREGATE,
        functions: &[
            declared::<DescribeAggregates>(),
            declared::<Accumulate>(),
            declared::<Merge>(),
            declared::<Retract>(),
            declared::<Evaluate>(),
        ],
    },
    Interface {
        name: wire::PROCESSOR,
        functions: &[
            declared::<DescribeProcessors>(),
            declared::<Process>(),
            declared::<Expire>(),
            declared::<Initialise>(),
        ],
    },
    Interface {
        name: wire::SOURCE,
        functions: &[
            declared::<DescribeSources>(),
            declared::<InitialOffset>(),
            declared::<LatestOffset>(),
            declared::<ReadPage>(),
            declared::<CommitOffset>(),
        ],
    },
    Interface { name: wire::MIGRATION, functions: &[declared::<DescribeSteps>(), declared::<Migrate>()] },
];

/// Where the exports of a component are.
pub(crate) struct Exports {
    version: &'static str,
    found: Vec<Found>,
}

struct Found {
    interface: &'static str,
    function: &'static Declared,
    index: ComponentExportIndex,
}

impl Exports {
    /// Looks for our interfaces in a compiled component. `names` are its exports, for messages.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub(crate) fn of(compiled: &Component, names: &[String]) -> Result<Self, String> {
        let instance =
            |interface: &str, version: &str| compiled.get_export_index(None, wire::interface(interface, version));
        let version = wire::VERSIONS.into_iter().find(|version| instance(wire::DESCRIBE, version).is_some());
        let version = version.ok_or_else(|| missing(&wire::interface(wire::DESCRIBE, wire::VERSIONS[0]), names))?;
        let mut found = Vec::new();
        for interface in &INTERFACES {
            let Some(place) = instance(interface.name, version) else { continue };
            for function in interface.functions {
                let index = compiled.get_export_index(Some(&place), function.name).ok_or_else(|| {
                    format!("its `{}` lacks `{}`", wire::interface(interface.name, version), function.name)
                })?;
                found.push(Found { interface: interface.name, function, index });
            }
        }
        let exports = Self { version, found };
        let kinds = || INTERFACES[1..].iter().map(|interface| interface.name);
        if !kinds().any(|kind| exports.has(kind)) {
            let wanted: Vec<String> = kinds().map(|kind| wire::interface(kind, version)).collect();
            return Err(missing(&wanted.join("` or `"), names));
        }
        Ok(exports)
    }

    /// The version of the package that the component was built against.
    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    /// Whether the interface is exported.
    pub(crate) fn has(&self, interface: &str) -> bool {
        self.found.iter().any(|found| found.interface == interface)
    }

    /// Where an export is, if it is there.
    pub(crate) fn index<E: Export>(&self) -> Option<&ComponentExportIndex> {
        let is_it = |found: &&Found| found.interface == E::INTERFACE && found.function.name == E::NAME;
        self.found.iter().find(is_it).map(|found| &found.index)
    }

    /// Whether the exports have the types of this host's WIT; `func` finds them in an instance.
    ///
    /// # Errors
    ///
    /// Which has not.
    pub(crate) fn check_types(
        &self,
        store: &mut Store<HostState>,
        func: impl Fn(&mut Store<HostState>, &ComponentExportIndex) -> Option<Func>,
    ) -> Result<(), String> {
        for found in &self.found {
            let place = format!("`{}` of `{}`", found.function.name, found.interface);
            let func = func(store, &found.index).ok_or_else(|| format!("{place} is no function"))?;
            (found.function.check)(&func, store).map_err(|error| format!("{place} has other types: {error:#}"))?;
        }
        Ok(())
    }
}

fn missing(wanted: &str, exports: &[String]) -> String {
    let exports = if exports.is_empty() { "nothing".into() } else { format!("`{}`", exports.join("`, `")) };
    format!("it exports {exports}, not `{wanted}`")
}
