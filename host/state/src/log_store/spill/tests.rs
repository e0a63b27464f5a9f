use super::*;
use crate::log_store::table::hash_of;
use hashbrown::DefaultHashBuilder;
use std::collections::BTreeMap;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

struct Written {
    hasher: DefaultHashBuilder,
    spill: Spill,
}

impl Written {
    /// Adds a run: `None` says that a key is gone.
    fn add(&mut self, rows: &[(&[u8], Option<&[u8]>)]) {
        let place = |key: &[u8]| Place::of(key, hash_of(&self.hasher, key));
        let mut rows: Vec<Row<'_>> =
            rows.iter().map(|(key, value)| Row { place: place(key), key, value: *value }).collect();
        rows.sort_by_key(|row| (row.place, row.key));
        let before = self.content();
        let is_there = |row: &&Row<'_>| before.contains_key(row.key);
        let gone = rows.iter().filter(|row| row.value.is_none()).count();
        let added = rows.iter().filter(|row| row.value.is_some()).filter(|row| !is_there(row)).count();
        self.spill.add(&std::env::temp_dir(), rows.into_iter(), (added as u64, gone as u64)).unwrap();
    }

    fn content(&self) -> Content {
        let mut content = Content::new();
        let mut last = None;
        let read = self.spill.each(u64::MAX, &mut |place, key, value| {
            assert!(last <= Some(place), "places come in order");
            last = Some(place);
            assert!(content.insert(key.to_vec(), value.to_vec()).is_none());
        });
        read.unwrap();
        assert_eq!(self.spill.keys(), content.len() as u64);
        content
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut found = None;
        let wanted = [Wanted { place: Place::of(key, hash_of(&self.hasher, key)), key }];
        self.spill.find(&wanted, &mut |_, value| found = Some(value.to_vec())).unwrap();
        found
    }
}

fn empty() -> Written {
    Written { hasher: DefaultHashBuilder::default(), spill: Spill::default() }
}

#[test]
fn the_newest_run_decides_and_merged_runs_answer_alike() {
    let mut written = empty();
    written.add(&[(b"a", Some(b"1")), (b"b", Some(b"1")), (b"c", Some(b"1")), (b"", Some(b""))]);
    written.add(&[(b"a", Some(b"2")), (b"b", None)]);
    written.add(&[(b"b", Some(b"3")), (b"c", None), (b"d", Some(&[7; 10_000]))]);
    let wanted = |written: &Written| {
        assert_eq!(written.get(b"a").as_deref(), Some(&b"2"[..]));
        assert_eq!(written.get(b"b").as_deref(), Some(&b"3"[..]));
        assert_eq!(written.get(b"c"), None);
        assert_eq!(written.get(b"").as_deref(), Some(&b""[..]));
        assert_eq!(written.get(b"d").unwrap().len(), 10_000, "a row may be larger than a block");
        assert_eq!(written.get(b"e"), None);
        assert_eq!(written.content().len(), 4);
    };
    wanted(&written);
    written.spill.merge_from(&std::env::temp_dir(), 1).unwrap();
    assert_eq!(written.spill.runs.len(), 2);
    wanted(&written);
    written.spill.merge_from(&std::env::temp_dir(), 0).unwrap();
    assert_eq!((written.spill.runs.len(), written.spill.runs[0].rows), (1, 4), "nobody needs to know what is gone");
    wanted(&written);
}

#[test]
fn a_hidden_range_hides_only_what_was_there_and_can_be_shown_again() {
    let mut written = empty();
    let key = |prefix: u64, rest: u8| [&prefix.to_be_bytes()[..], &[rest]].concat();
    written.add(&[(&key(1, 0), Some(b"x")), (&key(2, 0), Some(b"x")), (&key(9, 0), Some(b"x"))]);
    let hidden = written.spill.hide_through(2, 2);
    assert_eq!(written.content().len(), 1);
    assert_eq!(written.get(&key(2, 0)), None);
    written.add(&[(&key(2, 1), Some(b"late"))]);
    assert_eq!(written.content().len(), 2, "what comes later is seen");
    written.spill.show(&hidden, 2);
    assert_eq!(written.content().len(), 4);
    written.spill.hide_through(9, 4);
    written.spill.tidy(&std::env::temp_dir()).unwrap();
    assert!(written.spill.is_empty(), "files without a row that counts are let go");
}

#[test]
fn many_runs_become_few_and_lose_nothing() {
    let mut written = empty();
    let mut model = Content::new();
    for round in 0..60_u32 {
        let keys: Vec<[u8; 4]> = (0..200).map(|index| ((round * 97 + index * 31) % 5000_u32).to_be_bytes()).collect();
        let value = round.to_le_bytes();
        let rows: Vec<(&[u8], Option<&[u8]>)> = keys.iter().map(|key| (&key[..], Some(&value[..]))).collect();
        written.add(&rows);
        keys.iter().for_each(|key| drop(model.insert(key.to_vec(), value.to_vec())));
        written.spill.tidy(&std::env::temp_dir()).unwrap();
        assert!(written.spill.runs.len() <= 10, "{} runs", written.spill.runs.len());
    }
    assert_eq!(written.content(), model);
    assert!(model.iter().all(|(key, value)| written.get(key).as_ref() == Some(value)));
    let rows: u64 = written.spill.runs.iter().map(|run| run.rows).sum();
    assert!(rows <= 2 * written.spill.keys() + IDLE_ROWS, "{rows} rows for {} keys", written.spill.keys());
}

#[test]
fn keys_in_order_read_each_block_once_and_all_are_found() {
    let mut written = empty();
    let keys: Vec<[u8; 8]> = (0..20_000_u64).map(u64::to_be_bytes).collect();
    let rows: Vec<(&[u8], Option<&[u8]>)> = keys.iter().map(|key| (&key[..], Some(&key[4..]))).collect();
    written.add(&rows);
    let mut wanted: Vec<Wanted<'_>> =
        keys.iter().map(|key| Wanted { place: Place::of(key, hash_of(&written.hasher, key)), key }).collect();
    wanted.sort_unstable_by_key(|wanted| wanted.place);
    let mut found = 0;
    let count = &mut |wanted: &Wanted<'_>, value: &[u8]| found += usize::from(wanted.key[4..] == *value);
    written.spill.find(&wanted, count).unwrap();
    assert_eq!(found, keys.len());
    assert!(written.spill.memory() < 3 * keys.len() as u64, "{} bytes for {} keys", written.spill.memory(), keys.len());
}

#[test]
fn a_block_that_is_not_what_was_written_is_found() {
    let mut written = empty();
    let keys: Vec<[u8; 8]> = (0..2000_u64).map(u64::to_be_bytes).collect();
    let rows: Vec<(&[u8], Option<&[u8]>)> = keys.iter().map(|key| (&key[..], Some(&key[..]))).collect();
    written.add(&rows);
    for at in (0..written.spill.bytes()).step_by(97) {
        written.spill.runs[0].flip(at);
        let read = written.spill.each(u64::MAX, &mut |_, _, _| ());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData, "byte {at}");
        written.spill.runs[0].flip(at);
    }
    assert_eq!(written.content().len(), 2000);
}
