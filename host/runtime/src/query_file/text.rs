//! The text of a file that is parsed, and where in it things are.

use super::{Place, QueryFileError};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A file's text.
pub(super) struct SourceText {
    /// The file as the user called it.
    pub(super) path: PathBuf,
    /// Its folder, absolute: what relative paths in it are relative to.
    pub(super) folder: PathBuf,
    text: String,
}

impl SourceText {
    /// Reads a file of at most `limit` bytes.
    pub(super) fn read(path: &Path, limit: u64, what: &'static str) -> Result<Self, QueryFileError> {
        let unreadable = |source| QueryFileError::Unreadable { what, path: path.to_owned(), source };
        let text = read_text(path, limit, what)?;
        let absolute = std::path::absolute(path).map_err(unreadable)?;
        let folder = absolute.parent().map(Path::to_owned).unwrap_or(absolute);
        Ok(Self { path: path.to_owned(), folder, text })
    }

    /// Its values, raw.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, QueryFileError> {
        toml::from_str(&self.text).map_err(|error| {
            let place = error.span().map_or_else(|| self.place(), |span| self.place_at(&span));
            QueryFileError::Syntax { place, message: one_line(error.message()) }
        })
    }

    /// The file as a whole.
    pub(super) fn place(&self) -> Place {
        Place { file: self.path.as_path().into(), line: None }
    }

    /// The place of a value.
    pub(super) fn place_of<T>(&self, value: &Spanned<T>) -> Place {
        self.place_at(&value.span())
    }

    fn place_at(&self, span: &Range<usize>) -> Place {
        let before = self.text.as_bytes().get(..span.start).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Place { file: self.path.as_path().into(), line: Some(u32::try_from(line).unwrap_or(u32::MAX)) }
    }

    /// An [`QueryFileError::Invalid`] at a value.
    pub(super) fn invalid<T>(
        &self,
        at: &Spanned<T>,
        key: impl Into<String>,
        value: impl ToString,
        reason: impl Into<String>,
    ) -> QueryFileError {
        QueryFileError::Invalid {
            place: self.place_of(at),
            key: key.into(),
            value: shortened(&value.to_string()),
            reason: reason.into(),
        }
    }

    /// A path of the file, made absolute. URLs stay.
    pub(super) fn resolve(&self, path: &str) -> String {
        if path.is_empty() || path.contains("://") || path.starts_with("file:") {
            return path.to_owned();
        }
        self.folder.join(path).to_string_lossy().into_owned()
    }
}

/// Reads a file of at most `limit` bytes; devices and pipes, which may never end, are none.
pub(super) fn read_bytes(path: &Path, limit: u64, what: &'static str) -> Result<Vec<u8>, QueryFileError> {
    let unreadable = |source| QueryFileError::Unreadable { what, path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidData };
        return Err(unreadable(io::Error::new(kind, "it is not a plain file")));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(unreadable)?.take(limit + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(QueryFileError::TooLarge { what, path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// As [`read_bytes`], as text.
pub(super) fn read_text(path: &Path, limit: u64, what: &'static str) -> Result<String, QueryFileError> {
    String::from_utf8(read_bytes(path, limit, what)?).map_err(|error| QueryFileError::Unreadable {
        what,
        path: path.to_owned(),
        source: io::Error::new(ErrorKind::InvalidData, error.utf8_error()),
    })
}

/// Values in messages are cut to what a person reads.
pub(super) fn shortened(value: &str) -> String {
    const MOST: usize = 120;
    let value = one_line(value);
    if value.chars().count() <= MOST {
        return value;
    }
    value.chars().take(MOST).chain(['…']).collect()
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
