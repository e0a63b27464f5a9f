//! Arrow arrays ↔ the buffers of a batch at the boundary.
//!
//! Between the slot (arrays) and an instance (bytes): [`format`] names types as the Arrow C data interface does,
//! [`encode`] takes arrays apart without copying what need not be copied, [`decode`] checks a guest's bytes and makes
//! arrays of them.
//!
//! Rule of its life: whatever `decode` returns is a valid Arrow array of the agreed type; everything else is a
//! reason, for a person.
//!
//! It knows no WebAssembly.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod format;
#[cfg(test)]
mod tests;
