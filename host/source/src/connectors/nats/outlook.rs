//! What is new behind a position, and what is gone: pure decisions over what the server told.

use super::loss::{Loss, Lost};
use super::offset::Position;
use super::sequences::Sequences;
use super::starting::Start;
use millstream_client::nats::StreamState;

/// What there is behind a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Where reading goes on: the position, or the start of another stream of the name.
    pub(super) begin: Position,
    /// The end of what is there.
    pub(super) end: Position,
    /// What is gone right behind `begin`.
    pub(super) front: Sequences,
    /// What else is gone.
    pub(super) loss: Option<Loss>,
}

/// Where a new query begins. What was removed before is not missed.
pub(super) fn initial(start: &Start, now: Option<&StreamState>) -> Position {
    match (start, now) {
        // It may come, and is read from that message on.
        (Start::At(number), None) => Position { sequence: number - 1, created: None },
        (_, None) => Position::unseen(),
        (Start::Latest, Some(now)) => Position::of(&now.created, now.last),
        // The messages before it are still to come.
        (Start::At(number), Some(now)) if *number > now.last + 1 => Position { sequence: number - 1, created: None },
        (Start::At(number), Some(now)) => Position::of(&now.created, (number - 1).max(now.first - 1)),
        (Start::Earliest | Start::Time(_), Some(now)) => Position::of(&now.created, now.first - 1),
    }
}

/// What there is behind `at`, as the stream is now.
pub(super) fn outlook(stream: &str, at: &Position, now: Option<&StreamState>) -> Outlook {
    let gone = |after, why: String| Some(Loss { stream: stream.to_owned(), what: Lost::After(after), why });
    let nothing = |position: Position, loss| Outlook {
        begin: position.clone(),
        end: position,
        front: Sequences::default(),
        loss,
    };
    let Some(now) = now else {
        return match at.created {
            None => nothing(at.clone(), None),
            Some(_) => nothing(Position::unseen(), gone(at.sequence, "there is no such stream any more".to_owned())),
        };
    };
    let begin = match &at.created {
        Some(created) if *created != now.created => {
            let why = format!(
                "the stream was removed, and another one of its name was made at {}, which is read from its start",
                now.created
            );
            (Position::of(&now.created, 0), gone(at.sequence, why))
        }
        Some(_) if now.last < at.sequence => {
            let why = format!("it ends at {} now: the server went back to what it was before", now.last);
            return nothing(Position::of(&now.created, now.last), gone(now.last, why));
        }
        // It waits for the message where it is to begin.
        None if now.last <= at.sequence => return nothing(at.clone(), None),
        _ => (Position::of(&now.created, at.sequence), None),
    };
    let (begin, loss) = begin;
    let front = Sequences::between(begin.sequence, (now.first - 1).min(now.last));
    Outlook { end: Position::of(&now.created, now.last), begin, front, loss }
}

/// An outlook that goes no further than what there was when everything available was fixed; says what has changed since.
pub(super) fn up_to(found: Outlook, then: Option<Outlook>) -> Result<Outlook, String> {
    let Some(then) = then else {
        // It has come since.
        return Ok(Outlook { end: found.begin.clone(), front: Sequences::default(), loss: None, ..found });
    };
    if then.end.created != found.end.created {
        return Err("it was removed".to_owned());
    }
    if found.end.sequence < then.end.sequence {
        return Err(format!("it ended at {} then, and ends at {} now", then.end.sequence, found.end.sequence));
    }
    let front = found.front.within(0, then.end.sequence);
    Ok(Outlook { end: then.end, front, ..found })
}

/// What of a range a stream no longer has, when it was asked for the numbers.
pub(super) fn removed(now: &StreamState, after: u64, until: u64) -> Sequences {
    let mut between = Sequences::default();
    now.removed.iter().for_each(|number| between.push(*number));
    let front = Sequences::between(after, (now.first - 1).min(until));
    let behind = Sequences::between(now.last.max(after), until);
    front.and(&between.within(after, until)).and(&behind)
}

/// Whether a position is in the older half of what a stream has. A query that finds nothing for it goes on from there, so
/// that what it has passed is not missed when it goes: twice in the life of a message, not in every batch.
pub(super) fn is_old(at: &Position, now: &StreamState) -> bool {
    at.sequence < now.first.midpoint(now.last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_client::nats::Retention;
    use std::time::Duration;

    fn now(created: &str, first: u64, last: u64) -> StreamState {
        StreamState {
            created: created.into(),
            first,
            last,
            removed_between: 0,
            removed: vec![],
            subjects: vec![],
            retention: Retention::Limits,
            duplicate_window: Duration::ZERO,
            replicas: 1,
            most_bytes: None,
            takes_nothing: None,
        }
    }

    fn at(sequence: u64) -> Position {
        Position::of("then", sequence)
    }

    #[test]
    fn a_query_begins_where_it_should_and_what_was_removed_before_is_no_loss() {
        let stream = now("then", 4, 10);
        let of = |start: Start| initial(&start, Some(&stream));
        assert_eq!(of(Start::Earliest), at(3));
        assert_eq!(of(Start::Latest), at(10));
        assert_eq!(of(Start::At(2)), at(3));
        assert_eq!(of(Start::At(8)), at(7));
        assert_eq!(of(Start::At(11)), at(10));
        assert_eq!(of(Start::At(99)), Position { sequence: 98, created: None });
        assert_eq!(initial(&Start::Latest, None), Position::unseen());
        for start in [Start::Earliest, Start::Latest, Start::At(3), Start::At(99)] {
            let found = outlook("S", &of(start), Some(&stream));
            assert!(found.loss.is_none() && found.front.is_empty(), "{found:?}");
        }
        assert_eq!(initial(&Start::Earliest, Some(&now("then", 1, 0))), at(0));
    }

    #[test]
    fn what_is_new_goes_up_to_the_last_message() {
        let found = outlook("S", &at(4), Some(&now("then", 1, 10)));
        assert_eq!((found.begin, found.end, found.loss), (at(4), at(10), None));
        // It is to begin at a message that is still to come.
        let waiting = Position { sequence: 98, created: None };
        assert_eq!(outlook("S", &waiting, Some(&now("then", 1, 10))).end, waiting);
        assert_eq!(outlook("S", &waiting, Some(&now("then", 1, 99))).end, at(99));
        let empty = outlook("S", &Position::unseen(), Some(&now("then", 1, 0)));
        assert_eq!(empty.end, Position::unseen(), "a stream that has had nothing brings nothing");
    }

    #[test]
    fn what_was_removed_is_known_by_number_and_what_was_read_is_no_loss() {
        assert_eq!(outlook("S", &at(4), Some(&now("then", 9, 10))).front, Sequences::between(4, 8));
        assert!(outlook("S", &at(8), Some(&now("then", 9, 10))).front.is_empty());
        assert_eq!(outlook("S", &at(4), Some(&now("then", 11, 10))).front, Sequences::between(4, 10), "all of it");
        let mut holes = now("then", 3, 10);
        holes.removed = vec![4, 5, 8];
        assert_eq!(removed(&holes, 1, 8).to_string(), "2, 4 to 5, 8");
        assert_eq!(removed(&holes, 5, 12).to_string(), "8, 11 to 12");
    }

    #[test]
    fn another_stream_of_the_name_and_one_that_went_back_are_recognised() {
        let other = outlook("S", &at(5), Some(&now("later", 2, 9)));
        assert_eq!((other.begin, other.end), (Position::of("later", 0), Position::of("later", 9)));
        assert_eq!(other.front, Sequences::between(0, 1));
        assert!(other.loss.unwrap().to_string().contains("after 5 are gone: the stream was removed"));
        let back = outlook("S", &at(5), Some(&now("then", 1, 3)));
        assert_eq!((back.begin, back.end), (at(3), at(3)));
        assert!(back.loss.unwrap().to_string().contains("after 3 are gone: it ends at 3 now"));
        let gone = outlook("S", &at(5), None);
        assert_eq!((gone.begin, gone.end), (Position::unseen(), Position::unseen()));
        assert!(gone.loss.unwrap().to_string().contains("no such stream any more"));
        assert_eq!(outlook("S", &Position::unseen(), None).loss, None, "nothing was seen of it");
    }

    #[test]
    fn what_comes_after_everything_available_was_fixed_waits() {
        let (then, later) = (now("then", 1, 5), now("then", 1, 9));
        let of = |now: Option<&StreamState>| outlook("S", &at(2), now);
        assert_eq!(up_to(of(Some(&later)), Some(of(Some(&then)))).unwrap().end, at(5));
        let new = outlook("S", &Position::unseen(), Some(&later));
        let found = up_to(new, None).unwrap();
        assert_eq!(found.begin, found.end, "a stream that has come since");
        assert!(up_to(of(None), Some(of(Some(&then)))).is_err(), "a stream that has gone since");
        let back = now("then", 1, 3);
        assert!(up_to(of(Some(&back)), Some(of(Some(&then)))).is_err(), "a stream that has lost its end since");
    }

    #[test]
    fn a_position_is_moved_on_before_what_it_has_passed_goes() {
        assert!(is_old(&at(4), &now("then", 1, 10)));
        assert!(!is_old(&at(5), &now("then", 1, 10)));
        assert!(!is_old(&at(0), &now("then", 1, 0)));
    }
}
