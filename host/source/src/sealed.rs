//! Files that tell whether they are whole: a header line with a checksum, then the body.
//!
//! The connectors' own logs in the checkpoint are written this way. A file that does not match its checksum
//! is refused, never guessed around.

use crate::SourceError;
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};

const HEADER: &str = "millstream-source 1 crc32 ";

/// The bytes of a sealed file around `body`.
pub(crate) fn seal(body: impl AsRef<[u8]>) -> Bytes {
    let body = body.as_ref();
    let header = format!("{HEADER}{:08x}\n", crc32fast::hash(body));
    Bytes::from([header.as_bytes(), body].concat())
}

/// The body of a sealed file; `None` when it is not whole.
fn unseal(bytes: &Bytes) -> Option<Bytes> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let sum = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix(HEADER)?;
    let body = bytes.slice(end + 1..);
    (u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(&body)).then_some(body)
}

/// Reads the sealed file `path`; `None` when it does not exist.
pub(crate) fn read_bytes(name: &str, files: &dyn DurableFiles, path: &str) -> Result<Option<Bytes>, SourceError> {
    match files.get(path) {
        Ok(bytes) => match unseal(&bytes) {
            Some(body) => Ok(Some(body)),
            None => Err(damaged(name, files, path, "its checksum does not match")),
        },
        Err(DurableError::Missing { .. }) => Ok(None),
        Err(source) => Err(SourceError::Log { name: name.to_owned(), source }),
    }
}

/// Reads the text of the sealed file `path`; `None` when it does not exist.
pub(crate) fn read(name: &str, files: &dyn DurableFiles, path: &str) -> Result<Option<String>, SourceError> {
    let Some(body) = read_bytes(name, files, path)? else { return Ok(None) };
    let text = String::from_utf8(body.to_vec());
    text.map(Some).map_err(|error| damaged(name, files, path, &error.to_string()))
}

/// Writes a new sealed file.
pub(crate) fn write(
    name: &str,
    files: &dyn DurableFiles,
    path: &str,
    body: impl AsRef<[u8]>,
) -> Result<(), SourceError> {
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
        assert_eq!(unseal(&sealed), Some(Bytes::from("{\"a\":1}\n{\"b\":2}\n")));
        assert_eq!(unseal(&sealed.slice(..sealed.len() - 1)), None);
        let mut changed = sealed.to_vec();
        *changed.last_mut().unwrap() = b' ';
        assert_eq!(unseal(&changed.into()), None);
        assert_eq!(unseal(&Bytes::new()), None);
    }
}
