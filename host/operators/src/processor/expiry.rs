//! Entries whose time to live is over leave the state; the work is that of what leaves.

use super::fault::{StateFault, damaged};
use super::held::Numbers;
use super::layout::{VariableFamilies, VariableLayout, prefix_of_ms, second_of};
use super::timers::has_ended;
use millstream_state::{ByteRows, StateError, StateStore};
use std::collections::BTreeSet;

/// Numbers that are looked at together when a range is cut.
const LOOK: u64 = 64;

impl VariableLayout {
    /// Whether an entry has expired at `now_ms`.
    pub(super) fn has_expired(
        &self,
        store: &dyn StateStore,
        families: VariableFamilies,
        now_ms: i64,
    ) -> Result<bool, StateError> {
        families.expiry.map_or(Ok(false), |family| has_ended(store, family, now_ms))
    }

    /// Removes the entries that expired at or before `now_ms`; answers how many.
    pub(super) fn expire(
        &self,
        store: &mut dyn StateStore,
        families: VariableFamilies,
        now_ms: i64,
    ) -> Result<u64, StateFault> {
        let Some(family) = families.expiry else { return Ok(0) };
        let now = prefix_of_ms(now_ms);
        let (mut names, mut entries) = (ByteRows::new(), ByteRows::new());
        let mut owners: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut is_damaged = false;
        store.scan_through(family, second_of(now), &mut |name, _| {
            let Some((entry, time)) = name.split_last_chunk::<8>() else {
                is_damaged = true;
                return;
            };
            if u64::from_be_bytes(*time) > now {
                return;
            }
            let Some(entry) = entry.get(8..) else {
                is_damaged = true;
                return;
            };
            names.push(name);
            entries.push(entry);
            if self.is_numbered() {
                match entry.split_last_chunk::<8>() {
                    Some((key, _)) => _ = owners.insert(key.to_vec()),
                    None => is_damaged = true,
                }
            }
        })?;
        if is_damaged {
            return Err(damaged("an entry that is to expire has no name"));
        }
        store.delete_many(families.rows, &entries)?;
        store.delete_many(family, &names)?;
        if let Some(range) = families.range {
            self.cut(store, families, range, owners)?;
        }
        Ok(entries.len() as u64)
    }

    /// Lets the ranges of keys begin at their first entry.
    fn cut(
        &self,
        store: &mut dyn StateStore,
        families: VariableFamilies,
        range: millstream_state::FamilyId,
        owners: BTreeSet<Vec<u8>>,
    ) -> Result<(), StateFault> {
        let mut keys = ByteRows::new();
        owners.iter().for_each(|owner| keys.push(owner));
        let mut ranges = Vec::with_capacity(keys.len());
        for value in store.get_many(range, &keys)? {
            ranges.push(Numbers::read(value.ok_or_else(|| damaged("an entry belongs to a key without a range"))?)?);
        }
        let (mut emptied, mut ranged, mut values) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        for (key, mut numbers) in keys.iter().zip(ranges) {
            let before = numbers;
            while numbers.first < numbers.end {
                let mut names = ByteRows::new();
                let look = numbers.first..numbers.end.min(numbers.first.saturating_add(LOOK));
                look.clone().for_each(|number| self.entry_name(key, number, &mut names));
                let found = store.get_many(families.rows, &names)?.iter().position(Option::is_some);
                numbers.first = found.map_or(look.end, |place| look.start + place as u64);
                if found.is_some() {
                    break;
                }
            }
            if numbers.first == numbers.end {
                emptied.push(key);
            } else if numbers != before {
                ranged.push(key);
                values.push(&numbers.bytes());
            }
        }
        store.delete_many(range, &emptied)?;
        store.put_many(range, &ranged, &values)?;
        Ok(())
    }
}
