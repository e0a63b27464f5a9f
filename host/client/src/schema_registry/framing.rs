//! The five bytes before a value: a zero, and the number of its schema.

/// How many bytes stand before the payload.
pub const HEADER: usize = 5;

/// The number of the schema and the payload; `None` when the bytes are not framed.
pub fn frame_of(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes {
        [0, a, b, c, d, payload @ ..] => Some((u32::from_be_bytes([*a, *b, *c, *d]), payload)),
        _ => None,
    }
}

/// What stands before a payload with the schema of that number.
pub fn header(id: u32) -> [u8; HEADER] {
    let [a, b, c, d] = id.to_be_bytes();
    [0, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_zero_and_four_bytes_with_the_most_significant_first() {
        assert_eq!(header(258), [0, 0, 0, 1, 2]);
        assert_eq!(frame_of(&[0, 0, 0, 1, 2, 9, 8]), Some((258, &[9_u8, 8][..])));
        assert_eq!(frame_of(&header(u32::MAX)), Some((u32::MAX, &[][..])));
    }

    #[test]
    fn bytes_without_a_frame_are_none() {
        assert_eq!(frame_of(b""), None);
        assert_eq!(frame_of(&[0, 0, 0, 1]), None);
        assert_eq!(frame_of(br#"{"id":1}"#), None);
    }
}
