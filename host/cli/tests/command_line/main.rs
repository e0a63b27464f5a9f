//! The program as people run it: arguments in, standard output, standard error and exit code out.

mod checkpoints;
mod console;
mod plugins;
mod queries;
mod refusals;
mod signals;
mod swaps;
