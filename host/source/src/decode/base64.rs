//! Base64 with the standard alphabet, as JSON carries binary values.

fn sextet(byte: u8) -> Option<u32> {
    Some(
        match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }
        .into(),
    )
}

/// The bytes behind `text`; `None` when it is not padded base64. White space is skipped.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let clean: Vec<u8> = text.iter().copied().filter(|byte| *byte > b' ').collect();
    if !clean.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(clean.len() / 4 * 3);
    let groups = clean.len() / 4;
    for (at, group) in clean.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && at + 1 < groups) {
            return None;
        }
        let mut word = 0;
        for byte in &group[..4 - padding] {
            word = (word << 6) | sextet(*byte)?;
        }
        word <<= 6 * padding;
        bytes.extend_from_slice(&word.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn padded_text_decodes_and_the_rest_is_refused() {
        assert_eq!(decode(b"").unwrap(), b"");
        assert_eq!(decode(b"Zg==").unwrap(), b"f");
        assert_eq!(decode(b"Zm8=").unwrap(), b"fo");
        assert_eq!(decode(b"Zm9v YmFy").unwrap(), b"foobar");
        for bad in [&b"Zg"[..], b"Zg=", b"Z===", b"Zg==Zm8=", b"Z-8="] {
            assert!(decode(bad).is_none(), "{bad:?}");
        }
    }
}
