//! The plugin of `guests/` in every language, built and loaded once per process.
//!
//! `README.md` says what the plugin does. A folder of `guests/` is a language; nothing else has to be registered.

mod guest;

pub use guest::{Guest, guests};
