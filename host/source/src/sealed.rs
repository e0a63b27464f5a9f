//! Files that tell whether they are whole: a header line with a checksum, then the body.
//!
//! The connectors' own logs in the checkpoint are written this way. A file that does not match its checksum
//! is refused, never guessed around.

use crate::SourceError;
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};

const HEADER: &str = "millstream-source 1 crc32 ";

/// The bytes of a sealed file around `body`.
pub(crate) fn seal(body: &str) -> Bytes {
    Bytes::from(format!("{HEADER}{:08x}\n{body}", crc32fast::hash(body.as_bytes())))
}

/// The body of a sealed file; `None` when it is not whole.
fn unseal(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (header, body) = text.split_once('\n')?;
    let sum = u32::from_str_radix(header.strip_prefix(HEADER)?, 16).ok()?;
    (sum == crc32fast::hash(body.as_bytes())).then_some(body)
}

/// Reads the sealed file `path`; `None` when it does not exist.
pub(crate) fn read(name: &str, files: &dyn DurableFiles, path: &str) -> Result<Option<String>, SourceError> {
    match files.get(path) {
        Ok(bytes) => match unseal(&bytes) {
            Some(body) => Ok(Some(body.to_owned())),
            None => Err(damaged(name, files, path, "its checksum does not match")),
        },
        Err(DurableError::Missing { .. }) => Ok(None),
        Err(source) => Err(SourceError::Log { name: name.to_owned(), source }),
    }
}

/// Writes a new sealed file.
pub(crate) fn write(name: &str, files: &dyn DurableFiles, path: &str, body: &str) -> Result<(), SourceError> {
    files.put_new(path, seal(body)).map_err(|source| SourceError::Log { name: name.to_owned(), source })
}

/// A [`SourceError::Damaged`] about a file of the log.
pub(crate) fn damaged(name: &str, files: &dyn DurableFiles, path: &str, reason: &str) -> SourceError {
    let place = format!("{}/{path}", files.location().trim_end_matches('/'));
    SourceError::Damaged { name: name.to_owned(), place, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_or_changed_is_no_longer_whole() {
        let sealed = seal("{\"a\":1}\n{\"b\":2}\n");
        assert_eq!(unseal(&sealed), Some("{\"a\":1}\n{\"b\":2}\n"));
        assert_eq!(unseal(&sealed[..sealed.len() - 1]), None);
        let mut changed = sealed.to_vec();
        *changed.last_mut().unwrap() = b' ';
        assert_eq!(unseal(&changed), None);
        assert_eq!(unseal(b""), None);
    }
}
