//! Files that are compressed as a whole, by the ending of their name: `.gz` and `.zst`.
//!
//! Rule of its life: what comes out is counted. A file that grows beyond its limit is bad, however small it is: some
//! kilobytes can be made to fill any memory.

use flate2::read::MultiGzDecoder;
use std::io::{self, ErrorKind, Read};

/// The largest window of a Zstandard frame, as the power of two: 128 MiB, what its own tool takes without being told.
const WINDOW_LOG: u32 = 27;
/// Endings of compressions that are not read.
const OTHERS: [&str; 6] = [".bz2", ".lz4", ".snappy", ".xz", ".deflate", ".lzo"];

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Nothing,
    Gzip,
    Zstandard,
}

impl Compression {
    /// What the ending of a name says; the ending when it names one that is not read.
    pub(super) fn of(path: &str) -> Result<Self, &'static str> {
        let lower = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        if lower.ends_with(".gz") || lower.ends_with(".gzip") {
            return Ok(Self::Gzip);
        }
        if lower.ends_with(".zst") || lower.ends_with(".zstd") {
            return Ok(Self::Zstandard);
        }
        match OTHERS.into_iter().find(|ending| lower.ends_with(ending)) {
            Some(ending) => Err(ending),
            None => Ok(Self::Nothing),
        }
    }

    /// The text of a file, at most `limit` bytes of it when it is compressed.
    pub(super) fn open<'a>(self, raw: impl Read + Send + 'a, limit: u64) -> io::Result<Box<dyn Read + Send + 'a>> {
        let name = match self {
            Self::Nothing => return Ok(Box::new(raw)),
            Self::Gzip => "gzip",
            Self::Zstandard => "Zstandard",
        };
        let inner: Box<dyn Read + Send + 'a> = match self {
            Self::Zstandard => {
                let mut decoder = zstd::stream::read::Decoder::new(raw)?;
                decoder.window_log_max(WINDOW_LOG)?;
                Box::new(decoder)
            }
            _ => Box::new(MultiGzDecoder::new(raw)),
        };
        Ok(Box::new(Counted { inner, name, given: 0, limit }))
    }
}

/// Decompressed text, counted.
struct Counted<'a> {
    inner: Box<dyn Read + Send + 'a>,
    name: &'static str,
    given: u64,
    limit: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer).map_err(|error| {
            let reason = format!("its {} stream is damaged after {} bytes of text: {error}", self.name, self.given);
            io::Error::new(error.kind(), reason)
        })?;
        self.given += read as u64;
        if self.given > self.limit {
            let reason = format!("decompressed it is larger than maxDecompressedBytes ({})", self.limit);
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn text(compression: Compression, raw: &[u8], limit: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        compression.open(raw, limit)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn the_ending_says_how_a_file_is_compressed() {
        assert_eq!(Compression::of("/in/a.json.GZ"), Ok(Compression::Gzip));
        assert_eq!(Compression::of("s3://b/a.zst"), Ok(Compression::Zstandard));
        assert_eq!(Compression::of("/in.gz/a.json"), Ok(Compression::Nothing));
        assert_eq!(Compression::of("/in/a.bz2"), Err(".bz2"));
    }

    #[test]
    fn members_and_frames_one_after_the_other_are_one_text() {
        let both = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(text(Compression::Gzip, &both, 100).unwrap(), b"one two");
        let frame = |bytes: &[u8]| zstd::stream::encode_all(bytes, 3).unwrap();
        let both = [frame(b"one "), frame(b"two")].concat();
        assert_eq!(text(Compression::Zstandard, &both, 100).unwrap(), b"one two");
    }

    #[test]
    fn a_bomb_and_a_cut_file_are_told_apart() {
        let zeros = vec![0; 1 << 20];
        for (compression, bomb) in [
            (Compression::Gzip, gzip(&zeros)),
            (Compression::Zstandard, zstd::stream::encode_all(&zeros[..], 3).unwrap()),
        ] {
            let error = text(compression, &bomb, 1 << 16).unwrap_err();
            assert!(error.to_string().contains("larger than maxDecompressedBytes (65536)"), "{error}");
            let error = text(compression, &bomb[..bomb.len() - 5], 1 << 30).unwrap_err();
            assert!(error.to_string().contains("stream is damaged after"), "{error}");
        }
    }
}
