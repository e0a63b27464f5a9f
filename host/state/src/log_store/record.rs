//! One change in a state file, as bytes.
//!
//! Written by the open batch and by the merger of snapshots, read when a store is opened. `FORMAT.md` draws it.
//!
//! Rule of its life: reading trusts nothing. A length is compared with what is left before it is used, and
//! every failure is a sentence, never a panic.

/// A change of one family; families are numbered by the header of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Put { family: usize, key: &'a [u8], value: &'a [u8] },
    Delete { family: usize, key: &'a [u8] },
    DeleteThrough { family: usize, through: u64 },
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_THROUGH: u8 = 3;

impl<'a> Record<'a> {
    pub(super) fn family(&self) -> usize {
        match self {
            Self::Put { family, .. } | Self::Delete { family, .. } | Self::DeleteThrough { family, .. } => *family,
        }
    }

    /// The same change of another family.
    pub(super) fn of_family(self, family: usize) -> Self {
        match self {
            Self::Put { key, value, .. } => Self::Put { family, key, value },
            Self::Delete { key, .. } => Self::Delete { family, key },
            Self::DeleteThrough { through, .. } => Self::DeleteThrough { family, through },
        }
    }

    /// The key, if it changes only one.
    pub(super) fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Put { key, .. } | Self::Delete { key, .. } => Some(key),
            Self::DeleteThrough { .. } => None,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Put { family, key, value } => {
                out.push(PUT);
                write_number(out, family as u64);
                write_number(out, key.len() as u64);
                write_number(out, value.len() as u64);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
            Self::Delete { family, key } => {
                out.push(DELETE);
                write_number(out, family as u64);
                write_number(out, key.len() as u64);
                out.extend_from_slice(key);
            }
            Self::DeleteThrough { family, through } => {
                out.push(DELETE_THROUGH);
                write_number(out, family as u64);
                out.extend_from_slice(&through.to_le_bytes());
            }
        }
    }
}

/// Seven bits a byte, least first; the top bit says that another byte follows.
pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads from the front of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, len: u64, what: &str) -> Result<&'a [u8], String> {
        let fits = usize::try_from(len).ok().filter(|len| *len <= self.0.len());
        let len = fits.ok_or_else(|| format!("{what} of {len} bytes runs beyond the end"))?;
        let (front, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(front)
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N as u64, what)?);
        Ok(array)
    }

    pub(super) fn number(&mut self, what: &str) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(format!("{what} is no 64-bit number"))
    }

    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, String> {
        let len = self.number(what)?;
        std::str::from_utf8(self.bytes(len, what)?).map_err(|_| format!("{what} is no UTF-8"))
    }

    fn family(&mut self, families: usize) -> Result<usize, String> {
        let family = self.number("family number")?;
        usize::try_from(family)
            .ok()
            .filter(|family| *family < families)
            .ok_or_else(|| format!("a record names family {family} of {families}"))
    }

    /// The next record of a file with `families` families; `None` at the end.
    pub(super) fn record(&mut self, families: usize) -> Result<Option<Record<'a>>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let [kind] = self.array("record kind")?;
        let record = match kind {
            PUT => {
                let family = self.family(families)?;
                let key_len = self.number("key length")?;
                let value_len = self.number("value length")?;
                let key = self.bytes(key_len, "key")?;
                Record::Put { family, key, value: self.bytes(value_len, "value")? }
            }
            DELETE => {
                let family = self.family(families)?;
                let key_len = self.number("key length")?;
                Record::Delete { family, key: self.bytes(key_len, "key")? }
            }
            DELETE_THROUGH => {
                let family = self.family(families)?;
                Record::DeleteThrough { family, through: u64::from_le_bytes(self.array("limit")?) }
            }
            other => return Err(format!("unknown record kind {other}")),
        };
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let long = vec![7; 300];
        let records = [
            Record::Put { family: 0, key: b"k", value: b"" },
            Record::Put { family: 200, key: b"", value: &long },
            Record::Delete { family: 1, key: &long },
            Record::DeleteThrough { family: 3, through: u64::MAX },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        let mut reader = Reader(&bytes);
        for record in records {
            assert_eq!(reader.record(201).unwrap(), Some(record));
        }
        assert_eq!(reader.record(201).unwrap(), None);
    }

    #[test]
    fn numbers_round_trip_and_overlong_ones_are_refused() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            assert_eq!(Reader(&bytes).number("n").unwrap(), number);
        }
        assert!(Reader(&[0xff; 10]).number("n").is_err());
        assert!(Reader(&[0x80; 11]).number("n").is_err());
        assert!(Reader(&[0x80]).number("n").is_err());
    }

    #[test]
    fn lengths_beyond_the_end_and_unknown_families_are_refused() {
        let mut bytes = vec![PUT, 0];
        write_number(&mut bytes, u64::MAX);
        write_number(&mut bytes, 1);
        assert!(Reader(&bytes).record(1).unwrap_err().contains("runs beyond the end"));
        assert!(Reader(&[DELETE, 5, 0]).record(5).unwrap_err().contains("family 5 of 5"));
        assert!(Reader(&[9]).record(1).unwrap_err().contains("unknown record kind"));
    }
}
