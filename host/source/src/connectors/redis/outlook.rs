//! What is new behind a position, and what is gone: pure decisions over what the server told.

use super::id::EntryId;
use super::look::StreamState;
use super::loss::Loss;
use super::offset::Position;
use super::starting::Start;

/// What there is for a stream behind a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Where reading goes on: the position, or the start of another stream of the name.
    pub(super) begin: Position,
    /// The end of what is there.
    pub(super) end: Position,
    /// How many entries right behind `begin` are known to be gone.
    pub(super) front: u64,
    /// What is gone between.
    pub(super) loss: Option<Loss>,
}

impl Outlook {
    /// How many entries there are to read at most; `None` when not known.
    pub(super) fn backlog(&self) -> Option<u64> {
        if self.end.id <= self.begin.id {
            return Some(0);
        }
        Some(self.end.added?.saturating_sub(self.begin.added?))
    }
}

/// Where a new query begins with a stream. What was removed before counts as read.
pub(super) fn initial(start: Start, now: Option<&StreamState>) -> Position {
    let Some(now) = now else {
        return match start {
            // It may come, and is read from that entry on.
            Start::After(id) => Position { id, added: None, life: 0 },
            Start::Earliest | Start::Latest => Position::start(0),
        };
    };
    match start {
        Start::Latest => now.end(0),
        Start::Earliest => Position { id: EntryId::ZERO, added: now.removed(), life: 0 },
        Start::After(id) if id == now.last => now.end(0),
        // The entries up to there are still to come.
        Start::After(id) if id > now.last => Position { id, added: None, life: 0 },
        Start::After(id) if now.first.is_none_or(|first| first > id) => Position { id, added: now.removed(), life: 0 },
        // Somewhere in the middle: how many stand before it is not known.
        Start::After(id) => Position { id, added: None, life: 0 },
    }
}

/// What there is for `stream` behind `at`, as it is now.
pub(super) fn outlook(stream: &str, at: &Position, now: Option<&StreamState>) -> Outlook {
    let gone = |until, count, why: String| Loss { stream: stream.to_owned(), after: at.id, until, count, why };
    let Some(now) = now else {
        if at.added.is_none_or(|added| added == 0) {
            // Nothing of it was seen yet.
            return Outlook { begin: *at, end: *at, front: 0, loss: None };
        }
        let start = Position::start(at.life.saturating_add(1));
        let loss = gone(None, None, "there is no such stream any more".to_owned());
        return Outlook { begin: start, end: start, front: 0, loss: Some(loss) };
    };
    if is_other(at, now) {
        let life = at.life.saturating_add(1);
        let why = format!(
            "it is another stream of this name now, which ends at {} and is read from its start, or the server went back to \
             what it was before",
            now.last
        );
        let front = now.removed().unwrap_or(0);
        return Outlook { begin: Position::start(life), end: now.end(life), front, loss: Some(gone(None, None, why)) };
    }
    // A stream that waits for the entry where it is to begin.
    let end = if now.last > at.id { now.end(at.life) } else { *at };
    let loss = trimmed(at, now, &gone);
    let front = loss.as_ref().and_then(|loss| loss.count).unwrap_or(0);
    Outlook { begin: *at, end, front, loss }
}

/// An outlook that goes no further than what there was when everything available was fixed; says what has changed since.
pub(super) fn up_to(found: Outlook, then: Option<Outlook>) -> Result<Outlook, String> {
    let Some(then) = then else {
        // It has come since.
        return Ok(Outlook { end: found.begin, front: 0, loss: None, ..found });
    };
    if then.begin.life != found.begin.life {
        return Err("it was removed".to_owned());
    }
    if found.end.id < then.end.id {
        return Err(format!("it ended at {} then, and ends at {} now", then.end.id, found.end.id));
    }
    Ok(Outlook { end: then.end, ..found })
}

/// Whether what is there cannot be the stream of which entries up to `at` were added.
fn is_other(at: &Position, now: &StreamState) -> bool {
    let (Some(before), Some(added)) = (at.added, now.added) else {
        return false;
    };
    if before == 0 {
        return false;
    }
    // Whoever has removed the entries up to `at` has removed at least as many.
    let is_behind = now.first.is_none_or(|first| first > at.id);
    now.last < at.id || added < before || (is_behind && now.removed().is_some_and(|removed| removed < before))
}

/// What was removed behind `at` when nothing before it is left either.
fn trimmed(
    at: &Position,
    now: &StreamState,
    gone: &dyn Fn(Option<EntryId>, Option<u64>, String) -> Loss,
) -> Option<Loss> {
    let removed = now.removed()?;
    if now.first.is_some_and(|first| first <= at.id) || now.last <= at.id {
        return None;
    }
    let (until, why) = match now.first {
        Some(first) => (first, format!("the stream begins at {first} now")),
        None => (now.last, "the stream is empty now".to_owned()),
    };
    match at.added {
        Some(before) if removed > before => Some(gone(Some(until), Some(removed - before), why)),
        Some(_) => None,
        None if removed > 0 && at.id > EntryId::ZERO => Some(gone(Some(until), None, why)),
        None => None,
    }
}

/// How many entries each stream gives to a batch of at most `limit`, by how far it is behind; each at least one.
pub(super) fn shares(backlogs: &[Option<u64>], limit: u64) -> Vec<u64> {
    // What nobody can count has as much as the others may give at most.
    let size = |backlog: &Option<u64>| backlog.unwrap_or(limit);
    let total = backlogs.iter().map(|backlog| u128::from(size(backlog))).sum::<u128>().max(1);
    let share = |backlog: &Option<u64>| {
        let share = u128::from(limit) * u128::from(size(backlog)) / total;
        u64::try_from(share).unwrap_or(u64::MAX).max(1)
    };
    backlogs.iter().map(|backlog| if total <= u128::from(limit) { limit } else { share(backlog) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> EntryId {
        text.parse().unwrap()
    }

    fn at(text: &str, added: Option<u64>) -> Position {
        Position { id: id(text), added, life: 0 }
    }

    fn now(length: u64, first: Option<&str>, last: &str, added: Option<u64>) -> StreamState {
        StreamState { length, first: first.map(id), last: id(last), added }
    }

    #[test]
    fn a_query_begins_where_it_should_and_what_was_removed_before_is_no_loss() {
        let stream = now(4, Some("7-0"), "10-0", Some(10));
        assert_eq!(initial(Start::Earliest, Some(&stream)), at("0-0", Some(6)));
        assert_eq!(initial(Start::Latest, Some(&stream)), at("10-0", Some(10)));
        assert_eq!(initial(Start::After(id("3-0")), Some(&stream)), at("3-0", Some(6)));
        assert_eq!(initial(Start::After(id("8-0")), Some(&stream)), at("8-0", None));
        assert_eq!(initial(Start::After(id("10-0")), Some(&stream)), at("10-0", Some(10)));
        assert_eq!(initial(Start::After(id("99-0")), Some(&stream)), at("99-0", None));
        assert_eq!(initial(Start::Latest, None), at("0-0", Some(0)));
        for start in [Start::Earliest, Start::Latest, Start::After(id("3-0"))] {
            assert_eq!(outlook("s", &initial(start, Some(&stream)), Some(&stream)).loss, None, "{start:?}");
        }
    }

    #[test]
    fn what_is_new_goes_up_to_the_last_id() {
        let stream = now(10, Some("1-0"), "10-0", Some(10));
        let found = outlook("s", &at("4-0", Some(4)), Some(&stream));
        assert_eq!((found.end, found.backlog(), found.loss), (at("10-0", Some(10)), Some(6), None));
        let found = outlook("s", &at("10-0", Some(10)), Some(&stream));
        assert_eq!((found.begin, found.backlog()), (found.end, Some(0)));
        assert_eq!(outlook("s", &at("4-0", None), Some(&stream)).backlog(), None);
        // It is to begin at an id that is still to come.
        let found = outlook("s", &at("99-0", None), Some(&now(11, Some("1-0"), "11-0", Some(11))));
        assert_eq!((found.begin, found.end, found.loss), (at("99-0", None), at("99-0", None), None));
    }

    #[test]
    fn what_was_trimmed_is_told_by_number_and_what_was_read_is_no_loss() {
        let stream = now(2, Some("9-0"), "10-0", Some(10));
        let found = outlook("s", &at("5-0", Some(5)), Some(&stream));
        assert_eq!(found.front, 3);
        let loss = found.loss.unwrap();
        assert_eq!((loss.after, loss.until, loss.count), (id("5-0"), Some(id("9-0")), Some(3)));
        assert_eq!(outlook("s", &at("8-0", Some(8)), Some(&stream)).loss, None);
        assert_eq!(outlook("s", &at("9-0", Some(9)), Some(&stream)).loss, None);
        let empty = now(0, None, "10-0", Some(10));
        assert_eq!(outlook("s", &at("5-0", Some(5)), Some(&empty)).loss.unwrap().count, Some(5));
        assert_eq!(outlook("s", &at("10-0", Some(10)), Some(&empty)).loss, None);
        assert_eq!(outlook("s", &at("5-0", None), Some(&stream)).loss.unwrap().count, None);
        // A server that does not count.
        assert_eq!(outlook("s", &at("5-0", None), Some(&now(2, Some("9-0"), "10-0", None))).loss, None);
    }

    #[test]
    fn another_stream_of_the_name_is_recognised_and_read_from_its_start() {
        let read = at("5-0", Some(5));
        for (other, why) in [
            (now(3, Some("1-0"), "3-0", Some(3)), "it ends before"),
            (now(3, Some("7-0"), "9-0", Some(3)), "it has had fewer entries"),
            (now(6, Some("7-0"), "12-0", Some(6)), "none of those before were ever there"),
        ] {
            let found = outlook("s", &read, Some(&other));
            assert_eq!((found.begin, found.end.life), (Position::start(1), 1), "{why}");
            assert!(found.loss.is_some(), "{why}");
        }
        let gone = outlook("s", &read, None);
        assert_eq!((gone.begin, gone.end), (Position::start(1), Position::start(1)));
        assert!(gone.loss.unwrap().to_string().contains("no such stream any more"));
        // Nothing was seen of it.
        for unseen in [Position::start(1), at("7-0", None)] {
            assert_eq!(outlook("s", &unseen, None), Outlook { begin: unseen, end: unseen, front: 0, loss: None });
        }
    }

    #[test]
    fn what_comes_after_everything_available_was_fixed_waits() {
        let (then, later) = (now(5, Some("1-0"), "5-0", Some(5)), now(9, Some("1-0"), "9-0", Some(9)));
        let of = |now: Option<&StreamState>| outlook("s", &at("2-0", Some(2)), now);
        assert_eq!(up_to(of(Some(&later)), Some(of(Some(&then)))).unwrap().end, at("5-0", Some(5)));
        let new = outlook("s", &Position::start(0), Some(&later));
        assert_eq!(up_to(new, None).unwrap().backlog(), Some(0), "a stream that has come since");
        assert!(up_to(of(None), Some(of(Some(&then)))).is_err(), "a stream that has gone since");
        let back = now(3, Some("1-0"), "3-0", Some(3));
        assert!(up_to(of(Some(&back)), Some(of(Some(&then)))).is_err(), "a stream that has lost its end since");
    }

    #[test]
    fn a_limit_is_shared_by_how_far_streams_are_behind() {
        assert_eq!(shares(&[Some(300), Some(100)], 100), [75, 25]);
        assert_eq!(shares(&[Some(1), Some(999)], 10), [1, 9]);
        assert_eq!(shares(&[Some(3), Some(0)], 10), [10, 10], "all fits");
        assert_eq!(shares(&[None, Some(10)], 10), [5, 5]);
        assert_eq!(shares(&[Some(u64::MAX), Some(u64::MAX)], u64::MAX), [u64::MAX / 2, u64::MAX / 2]);
        assert_eq!(shares(&[], 1), [] as [u64; 0]);
    }
}
