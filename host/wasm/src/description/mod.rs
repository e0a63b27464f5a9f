//! What the `describe`s of a component answered → checked signatures.
//!
//! Read once per component, when it is loaded; plans are made from nothing else. One file per kind.
//!
//! Rule of its life: a signature that left here can be planned, encoded and decoded without further questions about
//! names, nesting or types.
//!
//! It compares no two components; [`crate::slot`] does, before a swap.

mod aggregate;
mod fields;
mod function;
mod migration;
mod processor;
mod source;

use std::collections::HashSet;

use crate::call::{Failure, Instance};
use crate::export::Exports;
use crate::limits::PluginLimits;
use crate::processor::ProcessorSignature;
use crate::signature::{AggregateSignature, FunctionSignature, MigrationStep, SourceSignature};
use crate::wire;
use crate::wire::aggregate::{AggregateFunction, DescribeAggregates};
use crate::wire::function::{DescribeFunctions, Function};
use crate::wire::migration::{DescribeSteps, Step};
use crate::wire::processor::{DescribeProcessors, ProcessorType};
use crate::wire::source::{DescribeSources, SourceType};
use fields::check_identifier;

/// Things of all kinds that one plugin may have.
const THINGS: usize = 256;

/// Everything that a component offers, kind by kind, in the order of the numbers.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) functions: Vec<FunctionSignature>,
    pub(crate) aggregates: Vec<AggregateSignature>,
    pub(crate) processors: Vec<ProcessorSignature>,
    pub(crate) sources: Vec<SourceSignature>,
    pub(crate) migrations: Vec<MigrationStep>,
}

/// The same as the guest told it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    functions: Vec<Function>,
    aggregates: Vec<AggregateFunction>,
    processors: Vec<ProcessorType>,
    sources: Vec<SourceType>,
    migrations: Vec<Step>,
}

/// Asks a component for everything that it offers.
pub(crate) fn ask(instance: &mut Instance, exports: &Exports) -> Result<Told, Failure> {
    let limits = PluginLimits::default();
    let mut told = Told { functions: instance.call::<DescribeFunctions>(&limits, ())?, ..Told::default() };
    if exports.has(wire::AGGREGATE) {
        told.aggregates = instance.call::<DescribeAggregates>(&limits, ())?;
    }
    if exports.has(wire::PROCESSOR) {
        told.processors = instance.call::<DescribeProcessors>(&limits, ())?;
    }
    if exports.has(wire::SOURCE) {
        told.sources = instance.call::<DescribeSources>(&limits, ())?;
    }
    if exports.has(wire::MIGRATION) {
        told.migrations = instance.call::<DescribeSteps>(&limits, ())?;
    }
    Ok(told)
}

impl Description {
    /// Checks what was told. Names are unique over all kinds.
    /// `has` says which interfaces are exported.
    pub(crate) fn check(told: Told, has: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let mut names = Names::default();
        let functions = names.each("function", told.functions, |f| &f.name, |f| function::signature(f, has))?;
        let aggregates = names.each("aggregate function", told.aggregates, |f| &f.name, aggregate::signature)?;
        let processors = names.each("processor", told.processors, |p| &p.name, processor::signature)?;
        let sources = names.each("source", told.sources, |s| &s.name, source::signature)?;
        match names.0.len() {
            0 => Err("it has no functions".into()),
            many if many > THINGS => Err(format!("it has {many} functions, more than {THINGS}")),
            _ => {
                let migrations = migration::steps(told.migrations)?;
                Ok(Self { functions, aggregates, processors, sources, migrations })
            }
        }
    }
}

/// The names of all kinds.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// Checks the things of one kind.
    fn each<T, S>(
        &mut self,
        kind: &str,
        things: Vec<T>,
        name: impl Fn(&T) -> &String,
        check: impl Fn(T) -> Result<S, String>,
    ) -> Result<Vec<S>, String> {
        if things.len() > THINGS {
            return Err(format!("it has {} {kind}s, more than {THINGS}", things.len()));
        }
        let mut checked = Vec::with_capacity(things.len());
        for thing in things {
            let name = name(&thing).clone();
            check_identifier(&name).map_err(|reason| format!("{kind} {reason}"))?;
            if !self.0.insert(name.clone()) {
                return Err(format!("function `{name}` is there twice"));
            }
            checked.push(check(thing).map_err(|reason| format!("{kind} `{name}`: {reason}"))?);
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use super::fields::DEPTH;
    use super::*;

    use crate::wire::function::{Function, Kind, Volatility};

    fn node(name: &str, format: &str, children: u32) -> wire::Field {
        wire::Field { name: name.into(), format: format.into(), nullable: true, children }
    }

    fn scalar(name: &str, arguments: Vec<wire::Field>, results: Vec<wire::Field>) -> Function {
        Function {
            name: name.into(),
            kind: Kind::Scalar,
            arguments,
            results,
            volatility: Volatility::Immutable,
            nulls: wire::Nulls::Passed,
        }
    }

    fn check(functions: Vec<Function>) -> Result<Description, String> {
        let told = Told { functions, ..Told::default() };
        Description::check(told, &|interface| interface == wire::SCALAR)
    }

    fn reason(function: Function) -> String {
        check(vec![function]).unwrap_err()
    }

    #[test]
    fn nested_types_are_folded_from_pre_order() {
        let result = vec![node("r", "+l", 1), node("item", "+s", 2), node("a", "l", 0), node("b", "d:10,2", 0)];
        let described = check(vec![scalar("f", vec![node("x", "u", 0), node("y", "b", 0)], result)]);
        let signature = described.unwrap().functions.remove(0);
        assert_eq!(
            signature.to_string(),
            r#"scalar f(x Utf8, y Boolean) -> r List(Struct("a": Int64, "b": Decimal128(10, 2)))"#
        );
    }

    fn mean() -> AggregateFunction {
        AggregateFunction {
            name: "mean".into(),
            arguments: vec![node("x", "g", 0)],
            result: vec![node("value", "g", 0)],
            state: vec![node("count", "l", 0), node("sum", "g", 0)],
            state_id: "sum/1".into(),
            nulls: wire::Nulls::Skipped,
            retracts: false,
        }
    }

    fn reason_of_aggregate(function: AggregateFunction) -> String {
        Description::check(Told { aggregates: vec![function], ..Told::default() }, &|_| true).unwrap_err()
    }

    #[test]
    fn aggregates_say_what_their_state_is() {
        let told = Told { aggregates: vec![mean()], ..Told::default() };
        let signature = Description::check(told, &|_| true).unwrap().aggregates.remove(0);
        let text = "aggregate mean(x Float64) -> value Float64, state (count Int64, sum Float64) `sum/1`";
        assert_eq!(signature.to_string(), text);
        let told = |change: fn(&mut AggregateFunction)| {
            let mut function = mean();
            change(&mut function);
            reason_of_aggregate(function)
        };
        assert!(told(|f| f.state.clear()).contains("its state has no columns"));
        assert!(told(|f| f.arguments.clear()).contains("at least one argument"));
        assert!(told(|f| f.result.clear()).contains("one result, not 0"));
        assert!(told(|f| f.state_id = "a`b".into()).contains("state id"));
        assert!(told(|f| f.state_id = "x".repeat(200)).contains("state id"));
        assert!(told(|f| f.state[0].format = "vu".into()).contains("aggregate function `mean`: state: `count`"));
    }

    #[test]
    fn names_are_unique_over_all_kinds() {
        let functions = vec![scalar("mean", vec![], vec![node("r", "l", 0)])];
        let told = Told { functions, aggregates: vec![mean()], ..Told::default() };
        assert!(Description::check(told, &|_| true).unwrap_err().contains("`mean` is there twice"));
        assert!(Description::check(Told::default(), &|_| true).unwrap_err().contains("no functions"));
    }

    #[test]
    fn lies_are_refused_with_their_place() {
        let ok = || vec![node("r", "l", 0)];
        assert!(reason(scalar("Upper", vec![], ok())).contains("`Upper` is not a lower-case identifier"));
        assert!(reason(scalar("f", vec![node("x", "vu", 0)], ok())).contains("`vu` is not one that plugins can use"));
        assert!(reason(scalar("f", vec![node("x", "+l", 1)], ok())).contains("`x` lacks children"));
        assert!(reason(scalar("f", vec![node("x", "l", 1), node("y", "l", 0)], ok())).contains("has children"));
        assert!(reason(scalar("f", vec![node("x", "d:39,2", 0)], ok())).contains("decimal(39, 2)"));
        assert!(reason(scalar("f", vec![], vec![])).contains("one result, not 0"));
        let twice = scalar("f", vec![node("x", "l", 0), node("x", "l", 0)], ok());
        assert!(reason(twice).contains("name `x` is there twice"));
        let mut deep: Vec<_> = (0..DEPTH).map(|_| node("x", "+l", 1)).collect();
        deep.push(node("x", "l", 0));
        assert!(reason(scalar("f", deep, ok())).contains("deeper"));
        let mut table = scalar("f", vec![], ok());
        table.kind = Kind::Table;
        assert!(reason(table).contains("`table` is not exported"));
    }
}
