//! JSON for people, in few lines: what lies on the surface stands on lines of its own, what lies deeper in a row.
//!
//! ```text
//! {
//!   "batch": 41,
//!   "sources": {
//!     "clicks": {"start": {"0": 1200}, "end": {"0": 1350}}
//!   }
//! }
//! ```
//!
//! Every document of a checkpoint is written like this, each batch writes two of them, and a reader of JSON sees no
//! difference.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Values at this depth and deeper have no line of their own.
const IN_A_ROW: usize = 3;

/// Where lines begin.
struct Lines {
    /// How many objects and lists are open.
    depth: usize,
    is_empty: bool,
}

/// The JSON of a value that stands within `depth` others.
pub(crate) fn to_vec(value: &impl Serialize, depth: usize) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = Vec::with_capacity(1024);
    value.serialize(&mut Serializer::with_formatter(&mut json, Lines { depth, is_empty: true }))?;
    Ok(json)
}

impl Lines {
    fn open<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        writer.write_all(bracket)
    }

    fn close<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        let is_empty = std::mem::take(&mut self.is_empty);
        self.depth -= 1;
        if !is_empty && self.depth + 1 < IN_A_ROW {
            self.line(writer)?;
        }
        writer.write_all(bracket)
    }

    fn next<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_empty = false;
        if self.depth < IN_A_ROW {
            if !first {
                writer.write_all(b",")?;
            }
            self.line(writer)
        } else if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn line<W: Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        const SPACES: &[u8] = b"\n      ";
        writer.write_all(&SPACES[..(1 + 2 * self.depth).min(SPACES.len())])
    }
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn text(value: &Value, depth: usize) -> String {
        String::from_utf8(to_vec(value, depth).unwrap()).unwrap()
    }

    #[test]
    fn what_lies_deep_stands_in_a_row() {
        let value =
            json!({"a": {"b": {"c": [1, {}], "d": {"e": "f\n"}}, "g": []}, "h": [[1, 2], [3]], "i": null, "j": {}});
        let wanted = r#"{
  "a": {
    "b": {"c": [1, {}], "d": {"e": "f\n"}},
    "g": []
  },
  "h": [
    [1, 2],
    [3]
  ],
  "i": null,
  "j": {}
}"#;
        assert_eq!(text(&value, 0), wanted);
        assert_eq!(serde_json::from_str::<Value>(wanted).unwrap(), value);
    }

    #[test]
    fn a_part_is_written_as_it_stands_in_the_whole() {
        let part = json!({"x": [1, 2], "y": {"z": []}});
        let whole = text(&json!({"part": part}), 0);
        assert_eq!(whole, format!("{{\n  \"part\": {}\n}}", text(&part, 1)));
    }
}
