//! Where a line ends: at `\n`, `\r\n` or `\r`, or at a separator of the user's own.

/// Splits the first line off `input`: the line without its end, and how many bytes it took with it.
/// `None` when there is nothing left.
pub(crate) fn next_line<'a>(input: &'a [u8], separator: Option<&[u8]>) -> Option<(&'a [u8], usize)> {
    if input.is_empty() {
        return None;
    }
    let Some(separator) = separator.filter(|s| !s.is_empty()) else {
        return Some(match input.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            Some(end) if input[end] == b'\r' && input.get(end + 1) == Some(&b'\n') => (&input[..end], end + 2),
            Some(end) => (&input[..end], end + 1),
            None => (input, input.len()),
        });
    };
    Some(match input.windows(separator.len()).position(|window| window == separator) {
        Some(end) => (&input[..end], end + separator.len()),
        None => (input, input.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<'a>(mut input: &'a [u8], separator: Option<&[u8]>) -> Vec<&'a [u8]> {
        let mut lines = Vec::new();
        while let Some((line, taken)) = next_line(input, separator) {
            lines.push(line);
            input = &input[taken..];
        }
        lines
    }

    #[test]
    fn every_kind_of_line_end_counts_once() {
        assert_eq!(all(b"a\nb\r\nc\rd", None), [&b"a"[..], b"b", b"c", b"d"]);
        assert_eq!(all(b"a\n\n", None), [&b"a"[..], b""]);
        assert_eq!(all(b"a||b\n||", Some(b"||")), [&b"a"[..], b"b\n"]);
        assert!(all(b"", None).is_empty());
    }
}
