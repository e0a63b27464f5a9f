//! Rows to commands, in pieces that are not too large.

use super::config::{MaxLength, Target};
use super::text;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use millstream_client::redis::Commands;
use std::borrow::Cow;
use std::collections::HashSet;

/// A piece has about so many bytes.
const PIECE: usize = 1 << 20;

/// Commands in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces(Vec<Commands>);

impl Pieces {
    pub(super) fn add<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        if self.0.last().is_none_or(|piece| piece.size() >= PIECE) {
            self.0.push(Commands::new());
        }
        if let Some(piece) = self.0.last_mut() {
            piece.add(arguments);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Commands> {
        self.0.iter()
    }
}

/// The rows of a batch as they are sent.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    pub(super) pieces: Pieces,
    /// The keys that are written, each once.
    pub(super) keys: Vec<Vec<u8>>,
}

/// What rows cannot be written, and why.
#[derive(Debug)]
pub(super) struct BadRow(pub(super) String);

impl From<ArrowError> for BadRow {
    fn from(error: ArrowError) -> Self {
        Self(error.to_string())
    }
}

/// The commands that write rows. `anew`: nothing of what a key had stays.
pub(super) fn encode(target: &Target, schema: &Schema, rows: &[RecordBatch], anew: bool) -> Result<Encoded, BadRow> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut encoded = Encoded::default();
    match target {
        Target::Stream { key, max_length } => {
            let head = head(key, *max_length);
            for batch in rows {
                for row in 0..batch.num_rows() {
                    entry(&mut encoded, &head, (&names, batch.columns()), row)?;
                }
            }
            encoded.keys.push(key.as_bytes().to_vec());
        }
        Target::Keys { prefix, columns, is_string } => {
            let of_key: Vec<usize> =
                columns.iter().filter_map(|key| names.iter().position(|name| name == key)).collect();
            let mut known = HashSet::new();
            for batch in rows {
                for row in 0..batch.num_rows() {
                    let key = key(prefix, &names, &of_key, batch.columns(), row)?;
                    match is_string {
                        true => string(&mut encoded.pieces, &key, &of_key, batch.columns(), row)?,
                        false => hash(&mut encoded.pieces, &key, (&names, batch.columns()), row, anew)?,
                    }
                    if known.insert(key.clone()) {
                        encoded.keys.push(key);
                    }
                }
            }
        }
    }
    Ok(encoded)
}

/// The beginning of the command that adds an entry.
fn head(key: &str, max_length: Option<MaxLength>) -> Vec<Vec<u8>> {
    let mut head = vec![b"XADD".to_vec(), key.as_bytes().to_vec()];
    if let Some(MaxLength { entries, is_about }) = max_length {
        head.push(b"MAXLEN".to_vec());
        head.push(if is_about { b"~".to_vec() } else { b"=".to_vec() });
        head.push(entries.to_string().into_bytes());
    }
    head.push(b"*".to_vec());
    head
}

fn entry(
    encoded: &mut Encoded,
    head: &[Vec<u8>],
    (names, columns): (&[&str], &[ArrayRef]),
    row: usize,
) -> Result<(), BadRow> {
    let mut command: Vec<Cow<'_, [u8]>> = head.iter().map(|part| part.as_slice().into()).collect();
    for (name, column) in names.iter().zip(columns) {
        if let Some(value) = text::value(column.as_ref(), row)? {
            command.push(name.as_bytes().into());
            command.push(value);
        }
    }
    if command.len() == head.len() {
        return Err(BadRow(
            "all columns of a row are NULL, and an entry of a stream has at least one field".to_owned(),
        ));
    }
    encoded.pieces.add(&command);
    Ok(())
}

fn key(prefix: &str, names: &[&str], of_key: &[usize], columns: &[ArrayRef], row: usize) -> Result<Vec<u8>, BadRow> {
    let mut values = Vec::with_capacity(of_key.len());
    for at in of_key {
        let value = text::value(columns[*at].as_ref(), row)?;
        values.push(value.ok_or_else(|| BadRow(format!("column `{}` of the key is NULL in a row", names[*at])))?);
    }
    Ok(text::key(prefix, &values))
}

/// A hash with all columns; those that are NULL are not there.
fn hash(
    pieces: &mut Pieces,
    key: &[u8],
    (names, columns): (&[&str], &[ArrayRef]),
    row: usize,
    anew: bool,
) -> Result<(), BadRow> {
    let mut set: Vec<Cow<'_, [u8]>> = vec![b"HSET".as_slice().into(), key.into()];
    let mut unset: Vec<&[u8]> = vec![b"HDEL", key];
    for (name, column) in names.iter().zip(columns) {
        match text::value(column.as_ref(), row)? {
            Some(value) => set.extend([name.as_bytes().into(), value]),
            None => unset.push(name.as_bytes()),
        }
    }
    if anew {
        pieces.add(&[b"DEL".as_slice(), key]);
    } else if unset.len() > 2 {
        pieces.add(&unset);
    }
    pieces.add(&set);
    Ok(())
}

/// A string of the one column that is no key; none when that is NULL.
fn string(pieces: &mut Pieces, key: &[u8], of_key: &[usize], columns: &[ArrayRef], row: usize) -> Result<(), BadRow> {
    let column = columns.iter().enumerate().find(|(at, _)| !of_key.contains(at)).map(|(_, column)| column);
    match column.map(|column| text::value(column.as_ref(), row)).transpose()?.flatten() {
        Some(value) => pieces.add(&[b"SET".as_slice(), key, &value]),
        None => pieces.add(&[b"DEL".as_slice(), key]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};
    use std::sync::Arc;

    fn rows(pairs: &[(Option<&str>, Option<i64>)]) -> RecordBatch {
        let keys: ArrayRef = Arc::new(pairs.iter().map(|pair| pair.0).collect::<StringArray>());
        let values: ArrayRef = Arc::new(pairs.iter().map(|pair| pair.1).collect::<Int64Array>());
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)]).unwrap()
    }

    fn sent(target: &Target, pairs: &[(Option<&str>, Option<i64>)], anew: bool) -> Result<(String, usize), String> {
        let rows = rows(pairs);
        let encoded = encode(target, &rows.schema(), &[rows], anew).map_err(|bad| bad.0)?;
        // Only the words: names and values, without their lengths.
        let text: String = encoded.pieces.iter().map(|piece| format!("{piece:?}")).collect();
        assert!(!text.is_empty() || pairs.is_empty());
        let commands = encoded.pieces.iter().map(Commands::len).sum();
        Ok((encoded.keys.iter().map(|key| String::from_utf8_lossy(key) + " ").collect(), commands))
    }

    fn keys(is_string: bool) -> Target {
        Target::Keys { prefix: "p:".into(), columns: vec!["k".into()], is_string }
    }

    #[test]
    fn every_key_is_named_once_and_what_is_null_is_taken_away() {
        let pairs = [(Some("a"), Some(1)), (Some("b"), None), (Some("a"), Some(2))];
        assert_eq!(sent(&keys(false), &pairs, false), Ok(("p:a p:b ".into(), 4)), "one HDEL");
        assert_eq!(sent(&keys(false), &pairs, true), Ok(("p:a p:b ".into(), 6)), "one DEL each");
        assert_eq!(sent(&keys(true), &pairs, false), Ok(("p:a p:b ".into(), 3)));
        let stream = Target::Stream { key: "s".into(), max_length: None };
        assert_eq!(sent(&stream, &pairs, false), Ok(("s ".into(), 3)));
    }

    #[test]
    fn a_row_without_a_key_or_without_any_value_is_named() {
        let error = sent(&keys(false), &[(None, Some(1))], false).unwrap_err();
        assert!(error.contains("`k`"), "{error}");
        let stream = Target::Stream { key: "s".into(), max_length: None };
        assert!(sent(&stream, &[(None, None)], false).unwrap_err().contains("all columns"));
        assert!(sent(&stream, &[(None, Some(1))], false).is_ok());
    }

    #[test]
    fn a_length_is_exact_or_about() {
        let of = |is_about| head("s", Some(MaxLength { entries: 10, is_about })).join(&b' ');
        assert_eq!(of(true), b"XADD s MAXLEN ~ 10 *");
        assert_eq!(of(false), b"XADD s MAXLEN = 10 *");
        assert_eq!(head("s", None).join(&b' '), b"XADD s *");
    }

    #[test]
    fn pieces_are_not_too_large() {
        let mut pieces = Pieces::default();
        let large = vec![0; PIECE / 2];
        for _ in 0..5 {
            pieces.add(&[&large]);
        }
        assert_eq!(pieces.iter().map(Commands::len).collect::<Vec<_>>(), [2, 2, 1]);
    }
}
