//! Streams of the empty world: an input that is at its end, and two outputs that take everything.

use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::p2::bindings::sync::io::poll::Pollable;
use wasmtime_wasi::p2::bindings::sync::io::streams::{self, InputStream, OutputStream};
use wasmtime_wasi::p2::{IoError, StreamError, StreamResult};

use super::{Denied, HANDLES};
use crate::limits::HostState;

/// The handles of the three streams.
pub(super) const STDIN: u32 = 0;
pub(super) const STDOUT: u32 = 1;
pub(super) const STDERR: u32 = 2;

/// Bytes that an output takes at once.
const ROOM: u64 = 64 << 10;

/// Links `wasi:io/error`. No function gives one, so nothing is behind the handles.
pub(super) fn link_errors(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    let mut errors = linker.instance("wasi:io/error@0.2.12")?;
    errors.resource("error", ResourceType::host::<IoError>(), |_, _| Ok(()))?;
    errors.func_wrap("[method]error.to-debug-string", |_, (_,): (Resource<IoError>,)| Ok((String::new(),)))
}

impl HostState {
    /// One more stream is in the guest's hands.
    pub(super) fn count_stream(&mut self) -> wasmtime::Result<()> {
        let streams = &mut self.world().streams;
        if *streams >= HANDLES {
            return Err(Denied("it holds more streams than it may").into());
        }
        *streams += 1;
        Ok(())
    }

    fn drop_stream(&mut self) {
        let streams = &mut self.world().streams;
        *streams = streams.saturating_sub(1);
    }
}

impl streams::Host for HostState {
    fn convert_stream_error(&mut self, error: StreamError) -> wasmtime::Result<streams::StreamError> {
        match error {
            StreamError::Closed => Ok(streams::StreamError::Closed),
            StreamError::LastOperationFailed(error) | StreamError::Trap(error) => Err(error),
        }
    }
}

impl streams::HostInputStream for HostState {
    fn read(&mut self, _stream: Resource<InputStream>, _length: u64) -> StreamResult<Vec<u8>> {
        Err(StreamError::Closed)
    }

    fn blocking_read(&mut self, _stream: Resource<InputStream>, _length: u64) -> StreamResult<Vec<u8>> {
        Err(StreamError::Closed)
    }

    fn skip(&mut self, _stream: Resource<InputStream>, _length: u64) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn blocking_skip(&mut self, _stream: Resource<InputStream>, _length: u64) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn subscribe(&mut self, _stream: Resource<InputStream>) -> wasmtime::Result<Resource<Pollable>> {
        self.always_ready()
    }

    fn drop(&mut self, _stream: Resource<InputStream>) -> wasmtime::Result<()> {
        self.drop_stream();
        Ok(())
    }
}

impl streams::HostOutputStream for HostState {
    fn check_write(&mut self, _stream: Resource<OutputStream>) -> StreamResult<u64> {
        Ok(ROOM)
    }

    fn write(&mut self, stream: Resource<OutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        self.print(stream.rep(), &bytes);
        Ok(())
    }

    fn blocking_write_and_flush(&mut self, stream: Resource<OutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        self.write(stream, bytes)
    }

    fn flush(&mut self, _stream: Resource<OutputStream>) -> StreamResult<()> {
        Ok(())
    }

    fn blocking_flush(&mut self, _stream: Resource<OutputStream>) -> StreamResult<()> {
        Ok(())
    }

    fn subscribe(&mut self, _stream: Resource<OutputStream>) -> wasmtime::Result<Resource<Pollable>> {
        self.always_ready()
    }

    fn write_zeroes(&mut self, _stream: Resource<OutputStream>, _length: u64) -> StreamResult<()> {
        Ok(())
    }

    fn blocking_write_zeroes_and_flush(&mut self, _stream: Resource<OutputStream>, _length: u64) -> StreamResult<()> {
        Ok(())
    }

    fn splice(
        &mut self,
        _stream: Resource<OutputStream>,
        _from: Resource<InputStream>,
        _length: u64,
    ) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn blocking_splice(
        &mut self,
        _stream: Resource<OutputStream>,
        _from: Resource<InputStream>,
        _length: u64,
    ) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn drop(&mut self, _stream: Resource<OutputStream>) -> wasmtime::Result<()> {
        self.drop_stream();
        Ok(())
    }
}

impl HostState {
    fn always_ready(&mut self) -> wasmtime::Result<Resource<Pollable>> {
        self.world().clocks.wait(0)
    }
}
