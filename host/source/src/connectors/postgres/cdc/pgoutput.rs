//! The messages of PostgreSQL's output plugin `pgoutput`, in version 1 of its protocol.

/// Microseconds from 1970 to 2000, where PostgreSQL's time begins.
const YEAR_2000_US: i64 = 946_684_800_000_000;

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// A transaction begins.
    Begin {
        /// When it was committed, in microseconds since 1970.
        committed_us: i64,
        /// Its number.
        xid: u32,
    },
    /// A transaction ends.
    Commit {
        /// The position behind it.
        end: u64,
    },
    /// A table, before its first change and after it has changed itself.
    Relation(Relation),
    /// A row is new.
    Insert {
        /// The table.
        relation: u32,
        /// Its values.
        new: Vec<Value>,
    },
    /// A row has other values.
    Update {
        /// The table.
        relation: u32,
        /// What it was: the key when that has changed, or all of it.
        old: Option<Old>,
        /// Its values.
        new: Vec<Value>,
    },
    /// A row is gone.
    Delete {
        /// The table.
        relation: u32,
        /// What it was.
        old: Old,
    },
    /// All rows of tables are gone.
    Truncate {
        /// The tables.
        relations: Vec<u32>,
    },
    /// What does not matter here.
    Other,
}

/// What a row was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Old {
    /// Whether these are all values, not the key's alone.
    pub(super) is_whole: bool,
    /// The values.
    pub(super) values: Vec<Value>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    /// Its number.
    pub(super) id: u32,
    /// Its columns: names and numbers of types.
    pub(super) columns: Vec<(String, u32)>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// None.
    Null,
    /// Large, and the same as before: it is not in the log.
    Unchanged,
    /// Its text form.
    Text(Vec<u8>),
}

/// Reads a message; answers what is wrong with one that is none.
pub(super) fn parse(bytes: &[u8]) -> Result<Message, String> {
    let mut input = Input { rest: bytes };
    let message = match input.byte()? {
        b'B' => {
            input.u64()?;
            let committed_us = (input.u64()? as i64).saturating_add(YEAR_2000_US);
            Message::Begin { committed_us, xid: input.u32()? }
        }
        b'C' => {
            input.byte()?;
            input.u64()?;
            Message::Commit { end: input.u64()? }
        }
        b'R' => {
            let id = input.u32()?;
            input.text()?;
            input.text()?;
            input.byte()?;
            let count = input.u16()?;
            let mut columns = Vec::new();
            for _ in 0..count {
                input.byte()?;
                let name = input.text()?;
                columns.push((name, input.u32()?));
                input.u32()?;
            }
            Message::Relation(Relation { id, columns })
        }
        b'I' => {
            let relation = input.u32()?;
            input.expect(b'N')?;
            Message::Insert { relation, new: input.tuple()? }
        }
        b'U' => {
            let relation = input.u32()?;
            let kind = input.byte()?;
            let old = match kind {
                b'K' | b'O' => {
                    let old = Old { is_whole: kind == b'O', values: input.tuple()? };
                    input.expect(b'N')?;
                    Some(old)
                }
                b'N' => None,
                other => return Err(format!("an update has the part {other}")),
            };
            Message::Update { relation, old, new: input.tuple()? }
        }
        b'D' => {
            let relation = input.u32()?;
            let kind = input.byte()?;
            if kind != b'K' && kind != b'O' {
                return Err(format!("a delete has the part {kind}"));
            }
            Message::Delete { relation, old: Old { is_whole: kind == b'O', values: input.tuple()? } }
        }
        b'T' => {
            let count = input.u32()?;
            input.byte()?;
            let mut relations = Vec::new();
            for _ in 0..count {
                relations.push(input.u32()?);
            }
            Message::Truncate { relations }
        }
        b'O' | b'Y' | b'M' => Message::Other,
        other => return Err(format!("a message of the unknown kind {other}")),
    };
    Ok(message)
}

struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("a message ends too early")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "a message ends too early".to_owned())
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        let found = self.byte()?;
        if found == byte { Ok(()) } else { Err(format!("a message has the part {found}, where {byte} is expected")) }
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_be_bytes)
    }

    fn text(&mut self) -> Result<String, String> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or("a name does not end")?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.byte()?;
        Ok(text)
    }

    fn tuple(&mut self) -> Result<Vec<Value>, String> {
        let count = self.u16()?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(match self.byte()? {
                b'n' => Value::Null,
                b'u' => Value::Unchanged,
                b't' => {
                    let length = usize::try_from(self.u32()?).map_err(|_| "a value is too long")?;
                    Value::Text(self.take(length)?.to_vec())
                }
                other => return Err(format!("a value of the unknown kind {other}")),
            });
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_has_its_old_key_and_new_values() {
        let mut bytes = b"U\0\0\0\x07K\0\x02t\0\0\0\x011nN\0\x02t\0\0\0\x012u".to_vec();
        let one = |text: &str| Value::Text(text.as_bytes().to_vec());
        let old = Old { is_whole: false, values: vec![one("1"), Value::Null] };
        let expected = Message::Update { relation: 7, old: Some(old), new: vec![one("2"), Value::Unchanged] };
        assert_eq!(parse(&bytes), Ok(expected));
        while bytes.pop().is_some() {
            assert!(parse(&bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_transaction_has_its_time_and_its_end() {
        let begin = [&b"B"[..], &7_u64.to_be_bytes(), &1_000_000_u64.to_be_bytes(), &9_u32.to_be_bytes()].concat();
        assert_eq!(parse(&begin), Ok(Message::Begin { committed_us: YEAR_2000_US + 1_000_000, xid: 9 }));
        let commit = [&b"C\0"[..], &7_u64.to_be_bytes(), &8_u64.to_be_bytes(), &1_u64.to_be_bytes()].concat();
        assert_eq!(parse(&commit), Ok(Message::Commit { end: 8 }));
        assert!(parse(b"Z").is_err());
    }
}
