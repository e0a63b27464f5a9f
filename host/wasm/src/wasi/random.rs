//! Random numbers of the empty world: a hash table of the guest's runtime needs some, and gets the same ones whenever
//! its call is repeated.

use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use super::Denied;
use crate::limits::HostState;

/// Bytes that one call of the guest may ask for.
const BYTES: u64 = 1 << 20;

impl HostState {
    fn random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        let length = usize::try_from(length).ok().filter(|_| length <= BYTES);
        let length = length.ok_or(Denied("it asks for more than a mebibyte of random bytes at once"))?;
        Ok(self.dice().bytes(length))
    }
}

impl random::Host for HostState {
    fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        self.random_bytes(length)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.dice().number())
    }
}

impl insecure::Host for HostState {
    fn get_insecure_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        self.random_bytes(length)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.dice().number())
    }
}

impl insecure_seed::Host for HostState {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.dice().number(), self.dice().number()))
    }
}
