//! How messages are written: numbers of variable length, and a tag before each value.

/// How the reader finds the end of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireType {
    /// A number of variable length.
    Varint = 0,
    /// Eight bytes.
    Eight = 1,
    /// A length and so many bytes.
    Length = 2,
    /// Four bytes.
    Four = 5,
}

/// Seven bits a byte, the least significant first.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        // The lowest seven bits, and one that says that more follow.
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// What stands before the value of a field.
pub(super) fn tag(number: u32, wire_type: WireType, out: &mut Vec<u8>) {
    varint((u64::from(number) << 3) | wire_type as u64, out);
}

/// Bytes with their length before them.
pub(super) fn bytes(value: &[u8], out: &mut Vec<u8>) {
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_tags_are_those_of_the_encoding_guide() {
        let mut out = Vec::new();
        tag(1, WireType::Varint, &mut out);
        varint(150, &mut out);
        tag(2, WireType::Length, &mut out);
        bytes(b"testing", &mut out);
        assert_eq!(out, b"\x08\x96\x01\x12\x07testing");
        out.clear();
        varint(u64::MAX, &mut out);
        assert_eq!(out.len(), 10);
    }
}
