//! Says of most keys that a run does not hold them, without reading it.
//!
//! A Bloom filter in blocks of 512 bits: a key sets six bits of one block, so a question costs one line of cache. Ten
//! bits per key let about two of a hundred wrong questions through.
//!
//! It is made of hashes, which are the store's; it never says no to a key that is there.

const BITS_PER_KEY: usize = 10;
const BLOCK_WORDS: usize = 8;
const BITS_SET: u32 = 6;

/// The keys of one run, roughly.
#[derive(Debug)]
pub(super) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// Room for so many keys.
    pub(super) fn new(keys: usize) -> Self {
        let blocks = (keys * BITS_PER_KEY).div_ceil(64 * BLOCK_WORDS).max(1);
        Self { words: vec![0; blocks * BLOCK_WORDS] }
    }

    pub(super) fn add(&mut self, hash: u64) {
        let (block, mut bits) = self.place(hash);
        for _ in 0..BITS_SET {
            let bit = (bits & 511) as usize;
            self.words[block + bit / 64] |= 1 << (bit % 64);
            bits >>= 9;
        }
    }

    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let (block, mut bits) = self.place(hash);
        for _ in 0..BITS_SET {
            let bit = (bits & 511) as usize;
            if self.words[block + bit / 64] & (1 << (bit % 64)) == 0 {
                return false;
            }
            bits >>= 9;
        }
        true
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.words.len() * 8) as u64
    }

    /// The first word of the block of a key, and the bits that choose within it.
    fn place(&self, hash: u64) -> (usize, u64) {
        // The store's hash is made for tables: its bits are mixed once more.
        let mut mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 29;
        let blocks = (self.words.len() / BLOCK_WORDS) as u64;
        let block = ((u128::from(mixed) * u128::from(blocks)) >> 64) as usize;
        (block * BLOCK_WORDS, mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_store::table::hash_of;
    use hashbrown::DefaultHashBuilder;

    #[test]
    fn holds_what_was_added_and_little_else() {
        let hasher = DefaultHashBuilder::default();
        let hash = |key: u64| hash_of(&hasher, &key.to_be_bytes());
        let mut filter = Filter::new(20_000);
        (0..20_000).for_each(|key| filter.add(hash(key)));
        assert!((0..20_000).all(|key| filter.may_hold(hash(key))));
        let wrong = (20_000..40_000).filter(|key| filter.may_hold(hash(*key))).count();
        assert!(wrong < 1000, "{wrong} of 20000 are let through");
    }
}
