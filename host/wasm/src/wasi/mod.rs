//! The empty world: what guests of other languages import of WASI 0.2, with nothing behind it.
//!
//! Python, Go, C and JavaScript guests bring a runtime that asks for an environment, files, clocks and sockets whether
//! its author wants them or not. Components that import `wasi:*` are linked to this:
//!
//! ```text
//! environment, arguments, folders   there are none          stdin                  is at its end
//! sockets, names of hosts           are denied              stdout, stderr         lines of the plugin's log
//! wall clock, monotonic clock       the time of the batch   exit                   a fault of the call
//! random                            the call's stamp        sleeping, polling      takes no time
//! ```
//!
//! Rule of its life: no function here waits for anything. A guest that sleeps moves its own clock on; so sleeping ends
//! at once and the deadline of a call holds. Handles are numbers of ours, and few.
//!
//! It grants nothing: whatever is not in this list is not linked, and a component that imports it is refused.

mod clocks;
mod doors;
mod random;
mod stdio;
mod streams;

use wasmtime::component::{HasData, Linker};
use wasmtime_wasi::p2::bindings::sync::{filesystem, io, sockets};
use wasmtime_wasi::p2::bindings::{cli, clocks as wasi_clocks, random as wasi_random};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

use crate::limits::HostState;
use clocks::Clocks;
use stdio::Output;

/// Handles of one kind that a guest may hold at a time.
const HANDLES: usize = 4096;
/// Packages of WASI that are in the empty world.
const PACKAGES: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// What the guest wanted is not in the empty world; it ends the call.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Denied(pub(crate) &'static str);

/// Whether `import` is an interface of the empty world.
pub(crate) fn is_known(import: &str) -> bool {
    let known = |import: &str| {
        let (name, version) = import.strip_prefix("wasi:")?.split_once('@')?;
        let (package, _) = name.split_once('/')?;
        Some(PACKAGES.contains(&package) && version.starts_with("0.2."))
    };
    known(import).unwrap_or(false)
}

/// What one instance has of the empty world.
#[derive(Default)]
pub(crate) struct Wasi {
    stdout: Output,
    stderr: Output,
    clocks: Clocks,
    streams: usize,
    networks: usize,
    behind_doors: Option<Box<BehindDoors>>,
}

/// What files and sockets would be kept in.
struct BehindDoors {
    context: WasiCtx,
    table: ResourceTable,
}

impl std::fmt::Debug for Wasi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wasi").field("clocks", &self.clocks).finish_non_exhaustive()
    }
}

impl Wasi {
    /// Forgets what belongs to the call before.
    pub(crate) fn begin_call(&mut self) {
        self.clocks.begin_call();
        self.stderr.forget();
    }

    /// The last lines that the guest wrote to stderr during this call.
    pub(crate) fn last_lines(&self) -> Option<String> {
        self.stderr.last_lines()
    }
}

impl HostState {
    /// The guest's part of the empty world, made when it is first asked for.
    fn world(&mut self) -> &mut Wasi {
        self.wasi.get_or_insert_with(Box::default)
    }
}

/// No function leads to a file or a socket; these are for the types of what is behind.
impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let empty = || Box::new(BehindDoors { context: WasiCtx::builder().build(), table: ResourceTable::new() });
        let behind = self.world().behind_doors.get_or_insert_with(empty);
        WasiCtxView { ctx: &mut behind.context, table: &mut behind.table }
    }
}

/// Host functions get the state of the store.
struct State;

impl HasData for State {
    type Data<'a> = &'a mut HostState;
}

/// Links the empty world.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
    use wasmtime_wasi::p2::bindings::filesystem::preopens;
    use wasmtime_wasi::p2::bindings::sockets as shared;
    use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};

    macro_rules! ours {
        ($($interface:path),* $(,)?) => {
            $({
                use $interface as interface;
                interface::add_to_linker::<HostState, State>(linker, |state| state)?;
            })*
        };
    }
    ours!(cli::environment, cli::stdin, cli::stdout, cli::stderr);
    ours!(cli::terminal_input, cli::terminal_output, cli::terminal_stdin, cli::terminal_stdout, cli::terminal_stderr);
    ours!(wasi_clocks::wall_clock, wasi_clocks::monotonic_clock);
    ours!(wasi_random::random, wasi_random::insecure, wasi_random::insecure_seed);
    ours!(io::poll, io::streams, preopens);
    ours!(shared::tcp_create_socket, shared::instance_network, shared::ip_name_lookup, sockets::udp_create_socket);
    cli::exit::add_to_linker::<HostState, State>(linker, |state| state)?;
    let options = shared::network::LinkOptions::default();
    shared::network::add_to_linker::<HostState, State>(linker, &options, |state| state)?;
    streams::link_errors(linker)?;
    filesystem::types::add_to_linker::<HostState, WasiFilesystem>(linker, HostState::filesystem)?;
    sockets::tcp::add_to_linker::<HostState, WasiSockets>(linker, HostState::sockets)?;
    sockets::udp::add_to_linker::<HostState, WasiSockets>(linker, HostState::sockets)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_known;

    #[test]
    fn only_the_packages_of_the_empty_world_are_known() {
        assert!(is_known("wasi:cli/environment@0.2.9"));
        assert!(is_known("wasi:sockets/tcp@0.2.12"));
        for foreign in
            ["wasi:http/types@0.2.10", "wasi:cli/run@0.3.0", "wasi:cli/exit", "wasi:cli", "foreign:cli/exit@0.2.0"]
        {
            assert!(!is_known(foreign), "{foreign}");
        }
    }
}
