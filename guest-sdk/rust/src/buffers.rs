//! Views of the buffers that came in, and bitmaps that go out.
//!
//! Fixed-width values are read as arrays of bytes, so nothing here depends on how the host aligned them.

/// Hands out the buffers of one batch in order.
#[derive(Debug)]
pub struct Reader<'a> {
    buffers: std::slice::Iter<'a, Vec<u8>>,
}

impl<'a> Reader<'a> {
    /// Starts at the first buffer.
    pub fn new(buffers: &'a [Vec<u8>]) -> Self {
        Self { buffers: buffers.iter() }
    }

    /// The next buffer; the batch has one for each part of the described schema.
    pub fn next_buffer(&mut self) -> &'a [u8] {
        self.buffers.next().expect("the host passes the buffers that the schema has")
    }

    /// The next buffer as a validity bitmap.
    pub fn validity(&mut self) -> Validity<'a> {
        let bytes = self.next_buffer();
        Validity { bytes: (!bytes.is_empty()).then_some(bytes) }
    }

    /// The next buffer as values of `N` bytes.
    pub fn values<const N: usize>(&mut self) -> &'a [[u8; N]] {
        self.next_buffer().as_chunks::<N>().0
    }
}

/// Which rows are not null; without a bitmap all are.
#[derive(Debug, Clone, Copy)]
pub struct Validity<'a> {
    bytes: Option<&'a [u8]>,
}

impl Validity<'_> {
    /// No bitmap.
    pub fn all() -> Self {
        Self { bytes: None }
    }

    /// Whether row `row` is not null.
    #[inline(always)]
    pub fn is_valid(&self, row: usize) -> bool {
        match self.bytes {
            None => true,
            Some(bytes) => bit(bytes, row),
        }
    }

    /// Whether there is a bitmap.
    pub fn has_nulls(&self) -> bool {
        self.bytes.is_some()
    }
}

/// Bit `row`, least significant first.
#[inline(always)]
pub(crate) fn bit(bytes: &[u8], row: usize) -> bool {
    bytes[row / 8] >> (row % 8) & 1 == 1
}

/// A bitmap under construction.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// Appends a bit.
    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if bit {
            let last = self.bytes.len() - 1;
            self.bytes[last] |= 1 << (self.len % 8);
        }
        self.len += 1;
    }

    /// The bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The validity bitmap of a result; it takes no memory until the first null.
#[derive(Debug, Default, Clone)]
pub struct Nulls {
    bits: Option<Bits>,
    rows: usize,
}

impl Nulls {
    /// Appends a row.
    #[inline(always)]
    pub fn push(&mut self, valid: bool) {
        if let Some(bits) = &mut self.bits {
            bits.push(valid);
        } else if !valid {
            self.start();
        }
        self.rows += 1;
    }

    #[cold]
    fn start(&mut self) {
        let mut bits = Bits { bytes: vec![0xff; self.rows / 8], len: self.rows / 8 * 8 };
        (bits.len..self.rows).for_each(|_| bits.push(true));
        bits.push(false);
        self.bits = Some(bits);
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes; none when there are no nulls.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bits.map(Bits::into_bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_starts_at_the_first_null_wherever_it_is() {
        for first in 0..20 {
            let mut nulls = Nulls::default();
            (0..25).for_each(|row| nulls.push(row != first));
            let bytes = nulls.into_bytes();
            assert_eq!(bytes.len(), 4);
            (0..25).for_each(|row| assert_eq!(bit(&bytes, row), row != first, "first {first} row {row}"));
        }
        let mut nulls = Nulls::default();
        (0..25).for_each(|_| nulls.push(true));
        assert!(nulls.into_bytes().is_empty());
    }
}
