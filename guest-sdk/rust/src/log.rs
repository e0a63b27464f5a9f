//! Lines for the operator's log.

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// For the operator.
    Info,
    /// For the plugin's author.
    Debug,
    /// For the plugin's author, in bulk.
    Trace,
}

/// Writes one line to the host's log. The host limits how much one call may write. Outside of a component, in tests,
/// nothing is written.
pub fn log(level: LogLevel, message: &str) {
    #[cfg(target_arch = "wasm32")]
    {
        use crate::bindings::describing::millstream::plugin::log;
        let level = match level {
            LogLevel::Error => log::Level::Error,
            LogLevel::Warn => log::Level::Warn,
            LogLevel::Info => log::Level::Info,
            LogLevel::Debug => log::Level::Debug,
            LogLevel::Trace => log::Level::Trace,
        };
        log::log(level, message);
    }
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (level, message);
}

/// A panic ends in a bare trap; its text goes to the log before that, and from there into the host's error.
#[cfg(target_arch = "wasm32")]
pub(crate) fn log_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| log(LogLevel::Error, &info.to_string())));
    });
}
