//! The plugin host against real components: good ones, hostile ones, foreign ones.
//!
//! The components are the examples of `tests/components` and the plugins of `plugins/`, compiled here.

#![allow(clippy::unwrap_used, reason = "tests")]

mod aggregates;
mod building;
mod components;
mod contained;
mod loading;
mod policies;
mod swaps;
mod values;
