//! The environment as the runtime takes it.

/// All variables. Text that is not Unicode is replaced: it can only end in a refusal that names the variable.
pub(crate) fn variables() -> Vec<(String, String)> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}
