//! `upgrade` in forms that it must not take under a running query: what it describes depends on a mark in its data. It
//! is never called.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, reason = "the exports")]

use std::hint::black_box;
use test_components::raw::{Batch, Error, Field, describe, export, field, scalar, table};

/// The mark: a head to find it by, and the name of the edition, filled up with dots.
static EDITION: [u8; 40] = *b"upgrade-edition:base....................";

fn is(name: &str) -> bool {
    let mark = black_box(&EDITION);
    let end = 16 + name.len();
    mark[16..end] == *name.as_bytes() && mark[end] == b'.'
}

fn function(name: &str, kind: describe::Kind, argument: (&str, &str), results: Vec<Field>) -> describe::Function {
    describe::Function {
        name: name.into(),
        kind,
        arguments: vec![field(argument.0, argument.1, false)],
        results,
        volatility: describe::Volatility::Immutable,
        nulls: describe::Nulls::Skipped,
    }
}

struct Shape;

impl describe::Guest for Shape {
    fn describe() -> Vec<describe::Function> {
        use describe::Kind::{Scalar, Table};
        let cents = match () {
            () if is("argument-type") => ("cents", "u"),
            () if is("argument-narrower") => ("cents", "i"),
            () if is("argument-name") => ("pence", "l"),
            () => ("cents", "l"),
        };
        let result = match () {
            () if is("result-type") => "g",
            () if is("result-narrower") => "i",
            () if is("result-text") => "u",
            () => "l",
        };
        let kind = if is("kind") { Table } else { Scalar };
        let mut price = function("price", kind, cents, vec![field("value", result, true)]);
        if is("argument-more") {
            price.arguments.push(field("rate", "l", false));
        }
        if is("argument-less") {
            price.arguments.clear();
        }
        if is("volatile") {
            price.volatility = describe::Volatility::Volatile;
        }
        let label = function("label", Scalar, ("code", "u"), vec![field("value", "u", true)]);
        let (word, place) = (field("word", "u", is("column-null")), field("place", "l", false));
        let columns = match () {
            () if is("columns-reordered") => vec![place, word],
            () if is("column-gone") => vec![word],
            () if is("column-more") => vec![word, place, field("more", "l", false)],
            () if is("column-renamed") => vec![field("token", "u", false), place],
            () if is("column-type") => vec![word, field("place", "i", false)],
            () => vec![word, place],
        };
        let parts = function("parts", Table, ("line", "u"), columns);
        let mut all = vec![price, label, parts];
        if is("price-gone") {
            all.remove(0);
        }
        if is("label-gone") {
            all.remove(1);
        }
        if is("parts-gone") {
            all.remove(2);
        }
        if is("label-renamed") {
            all[1].name = "labels".into();
        }
        if is("bad-name") {
            all[1].name = "Label".into();
        }
        if is("twice") {
            all[1].name = "price".into();
        }
        if is("nothing") {
            all.clear();
        }
        all
    }
}

fn never() -> Error {
    Error::Internal("it is never called".into())
}

impl scalar::Guest for Shape {
    fn call(_function: u32, _arguments: Batch) -> Result<scalar::ScalarOutput, Error> {
        Err(never())
    }
}

impl table::Guest for Shape {
    fn call(_function: u32, _arguments: Batch) -> Result<table::TableOutput, Error> {
        Err(never())
    }
}

export!(Shape with_types_in test_components::raw);
