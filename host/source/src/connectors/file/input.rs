//! A file or object that is open for reading, at any place in it.
//!
//! It stands below all decoders: lines and Avro read it from its beginning ([`Sequential`]), ORC at places of its own,
//! Parquet too, through [`Spans`](super::spans::Spans) once it is known what is to be read.
//!
//! Rule of its life: a failure of the disk or of the network is remembered. A decoder turns every failure into words of its
//! own; whoever sees one asks [`InputFile::failure`] whether the outside failed, or the content is bad. An object is read as
//! it was when it was opened: one that was replaced meanwhile fails.

use super::bucket::{Bucket, Opened, WHOLE_BYTES};
use bytes::Bytes;
use orc_rust::reader::ChunkReader as OrcChunks;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader as ParquetChunks, Length};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// How much a reader takes at a time where the decoder asks for little.
const BUFFER_BYTES: usize = 64 << 10;

/// An open file.
#[derive(Debug, Clone)]
pub(super) struct InputFile {
    content: Content,
    bytes: u64,
    failure: Arc<Mutex<Option<io::Error>>>,
}

#[derive(Debug, Clone)]
enum Content {
    Local(Arc<File>),
    Stored(Arc<Bucket>, Arc<Opened>),
}

impl InputFile {
    /// Opens a file of this machine.
    pub(super) fn local(path: &str) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { content: Content::Local(Arc::new(file)), bytes, failure: Arc::default() })
    }

    /// Opens an object.
    pub(super) fn stored(bucket: &Arc<Bucket>, location: &str) -> io::Result<Self> {
        let opened = bucket.key(location).and_then(|key| bucket.get(key)).map_err(to_io)?;
        let bytes = opened.bytes;
        Ok(Self { content: Content::Stored(Arc::clone(bucket), Arc::new(opened)), bytes, failure: Arc::default() })
    }

    /// Whether each reading is a request: it is an object that is not here as a whole.
    pub(super) fn is_remote(&self) -> bool {
        matches!(&self.content, Content::Stored(_, opened) if opened.whole.is_none())
    }

    /// What the outside said when it failed, if it did.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// From the beginning to the end.
    pub(super) fn sequential(&self) -> Sequential {
        self.from(0)
    }

    fn from(&self, at: u64) -> Sequential {
        Sequential { file: self.clone(), at, fetched: Bytes::new() }
    }

    /// The bytes of a range, all of them.
    pub(super) fn range(&self, start: u64, length: u64) -> io::Result<Bytes> {
        // A length that a damaged file asks for must not be believed before there is that much.
        if start.checked_add(length).is_none_or(|end| end > self.bytes) {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the file ends before the place that it points to"));
        }
        // Stores refuse to fetch nothing.
        if length == 0 {
            return Ok(Bytes::new());
        }
        let range = match &self.content {
            Content::Local(file) => {
                let mut buffer = vec![0; length as usize];
                file.read_exact_at(&mut buffer, start).map(|()| Bytes::from(buffer))
            }
            Content::Stored(_, opened) if opened.whole.is_some() => {
                let whole = opened.whole.as_ref().map(|whole| whole.slice(start as usize..(start + length) as usize));
                Ok(whole.unwrap_or_default())
            }
            Content::Stored(bucket, opened) => bucket.range(opened, start..start + length).map_err(to_io),
        };
        range.map_err(|error| self.failed(error))
    }

    /// Reads some bytes at a place of a local file.
    fn read_local(&self, file: &File, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        file.read_at(buffer, at).map_err(|error| self.failed(error))
    }

    /// Remembers a failure of the outside.
    fn failed(&self, error: io::Error) -> io::Error {
        let told = io::Error::new(error.kind(), error.to_string());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        told
    }
}

/// A file from one place on.
#[derive(Debug)]
pub(super) struct Sequential {
    file: InputFile,
    at: u64,
    /// What was fetched of an object and not yet read.
    fetched: Bytes,
}

impl Read for Sequential {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Content::Local(file) = &self.file.content {
            let read = self.file.read_local(file, self.at, buffer)?;
            self.at += read as u64;
            return Ok(read);
        }
        if self.fetched.is_empty() {
            let length = WHOLE_BYTES.min(self.file.bytes.saturating_sub(self.at));
            if length == 0 {
                return Ok(0);
            }
            self.fetched = self.file.range(self.at, length)?;
        }
        let taken = buffer.len().min(self.fetched.len());
        buffer[..taken].copy_from_slice(&self.fetched.split_to(taken));
        self.at += taken as u64;
        Ok(taken)
    }
}

impl Length for InputFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ParquetChunks for InputFile {
    type T = BufReader<Sequential>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::with_capacity(BUFFER_BYTES, self.from(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.range(start, length as u64).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

impl OrcChunks for InputFile {
    type T = BufReader<Sequential>;

    fn len(&self) -> u64 {
        self.bytes
    }

    fn get_read(&self, offset_from_start: u64) -> io::Result<Self::T> {
        Ok(BufReader::with_capacity(BUFFER_BYTES, self.from(offset_from_start)))
    }

    fn get_bytes(&self, offset_from_start: u64, length: u64) -> io::Result<Bytes> {
        self.range(offset_from_start, length)
    }
}

/// The failure of a store, with its kind.
pub(super) fn to_io(error: object_store::Error) -> io::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            ErrorKind::PermissionDenied
        }
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
