//! Options that the query gives to the plugin: `[plugin.NAME.config]` in the query file. The operator must grant `config`.

/// The value of an option, `None` where the query does not set it. Outside of a component, in tests, the tester says it.
pub fn get(name: &str) -> Option<String> {
    #[cfg(target_arch = "wasm32")]
    {
        crate::bindings::granted::millstream::plugin::config::get(name)
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        crate::granted::with(|granted| granted.config.get(name).cloned())
    }
}
