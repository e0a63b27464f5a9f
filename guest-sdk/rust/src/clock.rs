//! The time. The operator must grant `clock`.

/// The time of the batch, in milliseconds since 1970: the same whenever the batch is run. When a source is asked what is new,
/// the time of asking. Outside of a component, in tests, the tester says it.
pub fn batch_time_ms() -> i64 {
    #[cfg(target_arch = "wasm32")]
    {
        crate::bindings::granted::millstream::plugin::clock::batch_time_ms()
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        crate::granted::with(|granted| granted.time_ms)
    }
}
