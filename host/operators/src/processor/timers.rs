//! The timers of keys: what each key has, and which are due.

use super::fault::{StateFault, damaged};
use super::layout::{TimerFamilies, ms_of_prefix, prefix_of_ms, second_of};
use millstream_state::{ByteRows, FamilyId, StateError, StateStore};
use millstream_wasm::processor::{Outcome, Timers};
use std::collections::{BTreeMap, BTreeSet};

/// The timers of some keys, as prefixes, ascending.
#[derive(Debug, Default)]
pub(super) struct HeldTimers(Vec<Vec<u64>>);

/// A timer: the bytes of its key, and when it is due.
pub(super) type DueTimers = BTreeMap<Vec<u8>, Vec<u64>>;

impl HeldTimers {
    /// The timers of `keys`.
    pub(super) fn read(
        store: &mut dyn StateStore,
        families: TimerFamilies,
        keys: &ByteRows,
    ) -> Result<Self, StateFault> {
        let mut held = Vec::with_capacity(keys.len());
        for times in store.get_many(families.by_key, keys)? {
            let (times, rest) = times.unwrap_or_default().as_chunks::<8>();
            if !rest.is_empty() {
                return Err(damaged("the timers of a key are no list of times"));
            }
            held.push(times.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect());
        }
        Ok(Self(held))
    }

    /// The same for a call.
    pub(super) fn told(&self) -> Timers {
        let mut timers = Timers::default();
        for (key, times) in (0..).zip(&self.0) {
            times.iter().for_each(|time| timers.push(key, ms_of_prefix(*time)));
        }
        timers
    }

    /// Deletes and registers what the outcome says, then deletes those that were `due`, except of keys at fault; answers
    /// how many timers there are more.
    pub(super) fn apply(
        &self,
        store: &mut dyn StateStore,
        families: TimerFamilies,
        keys: &ByteRows,
        outcome: &Outcome,
        due: Option<&Timers>,
    ) -> Result<i64, StateFault> {
        let mut after: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let before = |key: u32| &self.0[key as usize];
        let mut change = |timers: &Timers, is_new: bool| {
            for (key, due_ms) in timers.iter() {
                let times = after.entry(key).or_insert_with(|| before(key).iter().copied().collect());
                let time = prefix_of_ms(due_ms);
                if is_new {
                    times.insert(time)
                } else {
                    times.remove(&time)
                };
            }
        };
        change(&outcome.deleted, false);
        change(&outcome.registered, true);
        if let Some(due) = due {
            let mut gone = Timers::default();
            let is_at_fault = |key| outcome.faults.binary_search_by_key(&key, |fault| fault.key).is_ok();
            due.iter().filter(|(key, _)| !is_at_fault(*key)).for_each(|(key, due_ms)| gone.push(key, due_ms));
            change(&gone, false);
        }
        let (mut written, mut lists, mut emptied) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        let (mut new, mut old) = (ByteRows::new(), ByteRows::new());
        let mut more = 0;
        for (key, times) in after {
            let (bytes, before) = (keys.row(key as usize), before(key));
            more += times.len() as i64 - before.len() as i64;
            let name = |time: u64, names: &mut ByteRows| {
                names.push_parts(&[&second_of(time).to_be_bytes(), bytes, &time.to_be_bytes()]);
            };
            before.iter().filter(|time| !times.contains(time)).for_each(|time| name(*time, &mut old));
            times.iter().filter(|time| before.binary_search(time).is_err()).for_each(|time| name(*time, &mut new));
            if times.is_empty() {
                emptied.push(bytes);
            } else {
                written.push(bytes);
                lists.push(&times.iter().flat_map(|time| time.to_be_bytes()).collect::<Vec<u8>>());
            }
        }
        store.delete_many(families.by_key, &emptied)?;
        store.put_many(families.by_key, &written, &lists)?;
        store.delete_many(families.by_time, &old)?;
        store.put_many(families.by_time, &new, &empty_rows(new.len()))?;
        Ok(more)
    }
}

/// The timers that are due at or before `now_ms`.
pub(super) fn due_timers(
    store: &dyn StateStore,
    families: TimerFamilies,
    now_ms: i64,
) -> Result<DueTimers, StateFault> {
    let through = prefix_of_ms(now_ms);
    let mut due = DueTimers::new();
    let mut is_damaged = false;
    store.scan_through(families.by_time, second_of(through), &mut |name, _| {
        let Some((rest, time)) = name.split_last_chunk::<8>() else {
            is_damaged = true;
            return;
        };
        let time = u64::from_be_bytes(*time);
        if let Some(key) = rest.get(8..)
            && time <= through
        {
            due.entry(key.to_vec()).or_default().push(time);
        }
    })?;
    if is_damaged {
        return Err(damaged("a timer has no time"));
    }
    due.values_mut().for_each(|times| times.sort_unstable());
    Ok(due)
}

/// Whether a timer is due at `now_ms`.
pub(super) fn is_due(store: &dyn StateStore, families: TimerFamilies, now_ms: i64) -> Result<bool, StateError> {
    has_ended(store, families.by_time, now_ms)
}

/// Whether a family whose names begin with a second and end with a time has one that ended at `now_ms`.
pub(super) fn has_ended(store: &dyn StateStore, family: FamilyId, now_ms: i64) -> Result<bool, StateError> {
    let now = prefix_of_ms(now_ms);
    let mut found = false;
    store.scan_through(family, second_of(now), &mut |name, _| {
        found |= name.last_chunk::<8>().is_some_and(|time| u64::from_be_bytes(*time) <= now);
    })?;
    Ok(found)
}

/// Values without bytes.
pub(super) fn empty_rows(rows: usize) -> ByteRows {
    let mut empty = ByteRows::with_capacity(rows, 0);
    (0..rows).for_each(|_| empty.push(&[]));
    empty
}
