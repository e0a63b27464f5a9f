//! Types that only MariaDB has: the log has their bytes, without the zeros at their end, and a SELECT gives text.

use std::ops::Range;

/// An address of IPv4, as MariaDB writes it; `None` when the bytes are none.
pub(super) fn inet4(bytes: &[u8]) -> Option<String> {
    let [a, b, c, d] = whole(bytes)?;
    Some(format!("{a}.{b}.{c}.{d}"))
}

/// An address of IPv6, as MariaDB writes it; `None` when the bytes are none. Others shorten them a little differently.
pub(super) fn inet6(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = whole(bytes)?;
    let groups: Vec<u16> =
        bytes.chunks_exact(2).map(|pair| pair.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte))).collect();
    let gap = longest_zeros(&groups);
    let mut texts: Vec<String> = groups.iter().map(|group| format!("{group:x}")).collect();
    let is_of_ipv4 = match gap {
        Range { start: 0, end: 6 } => true,
        Range { start: 0, end: 5 } => groups.get(5) == Some(&0xffff),
        _ => false,
    };
    if is_of_ipv4 {
        texts.truncate(6);
        texts.push(inet4(&bytes[12..])?);
    }
    if gap.is_empty() {
        return Some(texts.join(":"));
    }
    Some(format!("{}::{}", texts[..gap.start].join(":"), texts[gap.end..].join(":")))
}

/// The first of the longest runs of zeros.
fn longest_zeros(groups: &[u16]) -> Range<usize> {
    let (mut longest, mut start) = (0..0, 0);
    for at in 0..=groups.len() {
        if groups.get(at) == Some(&0) {
            continue;
        }
        if at - start > longest.len() {
            longest = start..at;
        }
        start = at + 1;
    }
    longest
}

/// A UUID, as MariaDB writes it; `None` when the bytes are none.
pub(super) fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = whole(bytes)?;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Some(text)
}

/// The bytes with the zeros that the log leaves out.
fn whole<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut all = [0; N];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_mariadb_does() {
        assert_eq!(inet4(&[10]).as_deref(), Some("10.0.0.0"));
        assert_eq!(inet4(&[1, 2, 3, 4, 5]), None);
        for (groups, expected) in [
            ([0, 0, 0, 0, 0, 0, 0, 0], "::"),
            ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
            ([0, 0, 0, 0, 0, 0, 1, 0], "::0.1.0.0"),
            ([0, 0, 0, 0, 0, 1, 0, 0], "::1:0:0"),
            ([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304], "::ffff:1.2.3.4"),
            ([0, 0, 0, 0, 0, 0xfffe, 0x102, 0x304], "::fffe:102:304"),
            ([1, 0, 0, 2, 0, 0, 3, 4], "1::2:0:0:3:4"),
            ([1, 0, 3, 4, 5, 6, 7, 8], "1::3:4:5:6:7:8"),
            ([1, 2, 3, 4, 5, 6, 7, 0], "1:2:3:4:5:6:7::"),
            ([0xfe80, 0, 0, 1, 0, 0, 0, 0], "fe80:0:0:1::"),
            ([1, 2, 3, 4, 5, 6, 7, 8], "1:2:3:4:5:6:7:8"),
        ] {
            let bytes: Vec<u8> = groups.iter().flat_map(|group: &u16| group.to_be_bytes()).collect();
            assert_eq!(inet6(&bytes).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_uuid_that_ends_with_zeros_is_whole() {
        assert_eq!(uuid(&[0x12, 0x3e]).as_deref(), Some("123e0000-0000-0000-0000-000000000000"));
        assert_eq!(uuid(&[255; 16]).as_deref(), Some("ffffffff-ffff-ffff-ffff-ffffffffffff"));
        assert_eq!(uuid(&[0; 17]), None);
    }
}
