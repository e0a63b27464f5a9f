//! Random numbers. The operator must grant `random`.

/// So many random bytes, at most 64 KiB: the same whenever the batch is run. Outside of a component, in tests, they are the
/// same in every run.
pub fn bytes(length: u32) -> Vec<u8> {
    #[cfg(target_arch = "wasm32")]
    {
        crate::bindings::granted::millstream::plugin::random::bytes(length)
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        crate::granted::with(|granted| {
            let mut next = || {
                granted.random = granted.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                granted.random.to_be_bytes()[0]
            };
            (0..length).map(|_| next()).collect()
        })
    }
}
