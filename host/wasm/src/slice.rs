//! The slice of the keys that a canary runs: a share of all keys, chosen by a hash of their bytes.
//!
//! ```text
//!   digest of the candidate, bytes of the key ──FNV-1a, mixed──► a number below 10,000 ──below the share?──► in the slice
//! ```
//!
//! Rule of its life: a value. The answer for a key follows from the candidate and the share alone, so it is the same in
//! every partition, after every restart, and with every release. A larger share of the same candidate has all keys of a
//! smaller one; another candidate has other keys.

use millstream_common::Digest;

/// The whole, in the unit in which shares are told.
pub const WHOLE: u32 = 10_000;

/// A share of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The hash after the digest of the candidate.
    seed: u64,
    share: u32,
}

impl Slice {
    /// `share` ten-thousandths of the keys, for a candidate.
    pub fn new(candidate: Digest, share: u32) -> Self {
        Self { seed: hash(0xcbf2_9ce4_8422_2325, &candidate.into_bytes()), share: share.min(WHOLE) }
    }

    /// Whether the key with these bytes is in it.
    pub fn has(&self, key: &[u8]) -> bool {
        let mut mixed = hash(self.seed, key);
        mixed ^= mixed >> 33;
        mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^= mixed >> 33;
        ((u128::from(mixed) * u128::from(WHOLE)) >> 64) < u128::from(self.share)
    }
}

/// FNV-1a.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(slice: Slice) -> usize {
        (0..10_000_u32).filter(|key| slice.has(&key.to_be_bytes())).count()
    }

    #[test]
    fn a_slice_has_about_its_share_and_never_changes() {
        let candidate = Digest::of(b"candidate");
        let (tenth, half) = (Slice::new(candidate, 1_000), Slice::new(candidate, 5_000));
        assert!((900..1_100).contains(&count(tenth)), "{}", count(tenth));
        assert!((4_800..5_200).contains(&count(half)), "{}", count(half));
        assert_eq!((count(Slice::new(candidate, 0)), count(Slice::new(candidate, WHOLE))), (0, 10_000));
        // Logged batches depend on these.
        let first: Vec<u32> = (0..100_u32).filter(|key| tenth.has(&key.to_be_bytes())).collect();
        assert_eq!(first, FIRST, "the same keys for ever");
        assert!((0..10_000_u32).all(|key| !tenth.has(&key.to_be_bytes()) || half.has(&key.to_be_bytes())));
        let other = Slice::new(Digest::of(b"another"), 1_000);
        assert!((0..10_000_u32).any(|key| other.has(&key.to_be_bytes()) != tenth.has(&key.to_be_bytes())));
    }

    const FIRST: [u32; 10] = [5, 11, 23, 36, 48, 59, 71, 76, 77, 80];
}
