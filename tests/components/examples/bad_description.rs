//! Offers a type that does not exist.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, reason = "the exports")]

use test_components::raw::{Batch, Error, describe, export, field, function, scalar, table};

struct Liar;

impl describe::Guest for Liar {
    fn describe() -> Vec<describe::Function> {
        vec![function("f", describe::Kind::Scalar, field("y", "vu", true))]
    }
}

impl scalar::Guest for Liar {
    fn call(_: u32, _: Batch) -> Result<scalar::ScalarOutput, Error> {
        Err(Error::Internal("nothing to call".into()))
    }
}

impl table::Guest for Liar {
    fn call(_: u32, _: Batch) -> Result<table::TableOutput, Error> {
        Err(Error::Internal("nothing to call".into()))
    }
}

export!(Liar with_types_in test_components::raw);
