//! Statistics that SQL lacks, as aggregate functions.
//!
//! | in SQL | gives |
//! |---|---|
//! | `geometric_mean(value)` | the geometric mean of positive numbers |
//! | `top_k(item, k)` | the `k` most frequent items with their counts |
//! | `distinct_estimate(item)` | about how many different items there are |

mod distinct;
mod geometric_mean;
mod top_k;

use millstream_sdk::prelude::*;

pub use distinct::DistinctEstimate;
pub use geometric_mean::GeometricMean;
pub use top_k::{Counter, TopK};

plugin!(aggregates: GeometricMean, TopK, DistinctEstimate);
