//! Whole numbers of variable length, for states that are stored as bytes.

/// Appends a number, seven bits to the byte.
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number off the front; nothing if there is none.
pub(super) fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes a double off the front.
pub(super) fn get_double(bytes: &mut &[u8]) -> Option<f64> {
    let (value, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(f64::from_le_bytes(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut rest = bytes.as_slice();
            assert_eq!(get(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(get(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(get(&mut [0xff; 10].as_slice()), None);
    }
}
