//! Sizes as people write them: `64 MiB`, `512kb`, `1048576`.

/// The units, longest names first where one ends with another.
const UNITS: [(&str, u64); 10] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("bytes", 1),
    ("byte", 1),
    ("b", 1),
    ("", 1),
];

/// Parses a size into bytes.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
    match (number.parse::<u64>(), factor) {
        (Ok(number), Some(factor)) => number.checked_mul(factor).ok_or_else(|| "it is too large".into()),
        _ => Err("write a whole number and a unit, for example `64 MiB`".into()),
    }
}

/// Parses a size that has a least and a most value.
pub(super) fn within(text: &str, (least, most): (u64, u64)) -> Result<u64, String> {
    let bytes = parse(text)?;
    if (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("a size from {} to {} is expected", format(least), format(most)))
}

/// A size for people.
pub(super) fn format(bytes: u64) -> String {
    let (factor, unit) = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        .into_iter()
        .find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .unwrap_or((1, "bytes"));
    format!("{} {unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [("64 MiB", 64 << 20), ("512kb", 512_000), (" 1048576 ", 1 << 20), ("1 GiB", 1 << 30)] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1 MiB", "1.5 GiB", "3 parsecs", "99999999999 GiB"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(format(64 << 20), "64 MiB");
        assert_eq!(format(1000), "1000 bytes");
    }
}
