//! Doors of the empty world that stay closed: no folder is open, every socket and every name of a host is denied.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{self, ErrorCode, IpAddress, IpAddressFamily, Network};
use wasmtime_wasi::p2::bindings::sockets::{instance_network, tcp_create_socket};
use wasmtime_wasi::p2::bindings::sync::sockets::udp_create_socket;
use wasmtime_wasi::p2::{DynPollable, IoError, SocketError, SocketResult, TcpSocket, UdpSocket};

use super::{Denied, HANDLES};
use crate::limits::HostState;

impl preopens::Host for HostState {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<preopens::Descriptor>, String)>> {
        Ok(Vec::new())
    }
}

impl instance_network::Host for HostState {
    fn instance_network(&mut self) -> wasmtime::Result<Resource<Network>> {
        let networks = &mut self.world().networks;
        if *networks >= HANDLES {
            return Err(Denied("it holds more networks than it may").into());
        }
        *networks += 1;
        Ok(Resource::new_own(0))
    }
}

impl network::Host for HostState {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(&mut self, _error: Resource<IoError>) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for HostState {
    fn drop(&mut self, _network: Resource<Network>) -> wasmtime::Result<()> {
        let networks = &mut self.world().networks;
        *networks = networks.saturating_sub(1);
        Ok(())
    }
}

impl tcp_create_socket::Host for HostState {
    fn create_tcp_socket(&mut self, _family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        Err(ErrorCode::AccessDenied.into())
    }
}

impl udp_create_socket::Host for HostState {
    fn create_udp_socket(&mut self, _family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        Err(ErrorCode::AccessDenied.into())
    }
}

impl ip_name_lookup::Host for HostState {
    fn resolve_addresses(
        &mut self,
        _network: Resource<Network>,
        _name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        Err(ErrorCode::AccessDenied.into())
    }
}

impl ip_name_lookup::HostResolveAddressStream for HostState {
    fn resolve_next_address(&mut self, _stream: Resource<ResolveAddressStream>) -> SocketResult<Option<IpAddress>> {
        Err(ErrorCode::AccessDenied.into())
    }

    fn subscribe(&mut self, _stream: Resource<ResolveAddressStream>) -> wasmtime::Result<Resource<DynPollable>> {
        Err(Denied("it waits for an address that nobody looks up").into())
    }

    fn drop(&mut self, _stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        Ok(())
    }
}
