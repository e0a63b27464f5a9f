//! Text in pieces that end where a line ends.
//!
//! Rule of its life: when the text breaks off with an error, the whole lines before it come first, then the error. A line
//! that no decoder would take is an error before it fills the memory.

use crate::decode::MAX_INPUT;
use std::io::{self, ErrorKind, Read};

/// How many bytes are read at once; a longer line makes it more.
const CHUNK_BYTES: usize = 1 << 20;

/// A text in pieces.
pub(super) struct Chunks<'a> {
    text: Box<dyn Read + Send + 'a>,
    separator: Option<&'a [u8]>,
    buffer: Vec<u8>,
    /// How much of the buffer was handed out.
    given: usize,
    at_end: bool,
    broken: Option<io::Error>,
    /// How long a line may be.
    longest: usize,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(text: Box<dyn Read + Send + 'a>, separator: Option<&'a [u8]>) -> Self {
        Self { text, separator, buffer: Vec::new(), given: 0, at_end: false, broken: None, longest: MAX_INPUT }
    }

    /// The next piece; none at the end.
    pub(super) fn next_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.drain(..self.given);
        self.given = 0;
        loop {
            if self.at_end {
                self.given = self.buffer.len();
            } else if self.buffer.len() >= CHUNK_BYTES || self.broken.is_some() {
                self.given = last_line_end(&self.buffer, self.separator);
            }
            if self.given > 0 {
                return Ok(Some(&self.buffer[..self.given]));
            }
            if let Some(error) = self.broken.take() {
                self.at_end = true;
                self.buffer.clear();
                return Err(error);
            }
            if self.at_end {
                return Ok(None);
            }
            if self.buffer.len() > self.longest {
                let reason = format!("a line is longer than {} bytes", self.longest);
                self.broken = Some(io::Error::new(ErrorKind::InvalidData, reason));
                self.buffer.clear();
                continue;
            }
            // Grows with the buffer, so that one very long line costs no more than its length.
            let wanted = self.buffer.len().max(CHUNK_BYTES);
            match Read::by_ref(&mut self.text).take(wanted as u64).read_to_end(&mut self.buffer) {
                Ok(read) => self.at_end = read < wanted,
                Err(error) => self.broken = Some(error),
            }
        }
    }
}

/// Where the last whole line ends; 0 when there is none.
fn last_line_end(bytes: &[u8], separator: Option<&[u8]>) -> usize {
    match separator.filter(|separator| !separator.is_empty()) {
        Some(separator) => {
            bytes.windows(separator.len()).rposition(|window| window == separator).map_or(0, |at| at + separator.len())
        }
        None => {
            // A carriage return at the very end may be half of a line end.
            let safe = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            safe.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that breaks off with an error.
    struct Broken(&'static [u8]);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::Error::other("broken"));
            }
            let taken = self.0.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&self.0[..taken]);
            self.0 = &self.0[taken..];
            Ok(taken)
        }
    }

    #[test]
    fn whole_lines_come_before_the_error() {
        let mut chunks = Chunks::new(Box::new(Broken(b"a\nb\nhalf")), None);
        assert_eq!(chunks.next_chunk().unwrap(), Some(&b"a\nb\n"[..]));
        assert!(chunks.next_chunk().is_err());
        assert_eq!(chunks.next_chunk().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_an_error_and_does_not_fill_the_memory() {
        let text = io::Cursor::new(b"a\n").chain(io::repeat(b'x'));
        let mut chunks = Chunks::new(Box::new(text), None);
        chunks.longest = 4 << 20;
        assert_eq!(chunks.next_chunk().unwrap(), Some(&b"a\n"[..]));
        let error = chunks.next_chunk().unwrap_err();
        assert!(error.to_string().contains("longer than 4194304 bytes"), "{error}");
        assert!(chunks.buffer.capacity() < 32 << 20);
        assert_eq!(chunks.next_chunk().unwrap(), None);
    }
}
