//! Never says what it offers.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, reason = "the exports")]

use std::hint::black_box;
use test_components::raw::{Batch, Error, describe, export, scalar, table};

struct Silent;

impl describe::Guest for Silent {
    fn describe() -> Vec<describe::Function> {
        let mut n = 0u64;
        while black_box(true) {
            n = black_box(n + 1);
        }
        vec![]
    }
}

impl scalar::Guest for Silent {
    fn call(_: u32, _: Batch) -> Result<scalar::ScalarOutput, Error> {
        Err(Error::Internal("nothing to call".into()))
    }
}

impl table::Guest for Silent {
    fn call(_: u32, _: Batch) -> Result<table::TableOutput, Error> {
        Err(Error::Internal("nothing to call".into()))
    }
}

export!(Silent with_types_in test_components::raw);
