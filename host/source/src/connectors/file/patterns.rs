//! Patterns of paths and of names, as Hadoop writes them.
//!
//! ```text
//!   *       any text without a `/`, `**` too          {a,b}   a or b, which may be patterns of several folders
//!   ?       one character                             \x      x itself
//!   [a-z]   one of these    [^a-z] or [!a-z]   one that is none of these
//! ```
//!
//! Braces are written out first; then a path is names and patterns, part by part ([`Places`]).
//!
//! Rule of its life: a wildcard does not find what is hidden, or the logs of sinks would be data; a pattern that begins with
//! `_` or `.` itself does. Nothing is looked at here.

use glob::{MatchOptions, Pattern};
use millstream_store::{is_stored, split};

/// How many paths the braces of one may stand for.
const MOST: usize = 1_000;
/// How parts are compared.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The parts of a path that are names.
pub(super) fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// Whether a name is not one of input: it belongs to somebody's bookkeeping, or is not finished. `_a=b` is a column.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('=')) || name.ends_with("._COPYING_")
}

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Name(String),
    Pattern(Pattern),
}

impl Part {
    fn parse(text: &str) -> Result<Self, String> {
        let (mut name, mut pattern) = (String::new(), String::new());
        let mut is_pattern = false;
        let mut rest = text;
        while let Some((unit, behind)) = unit(rest)? {
            rest = behind;
            match (unit, unit.strip_prefix('[')) {
                // Of several stars the crate would make all folders below.
                ("*", _) if pattern.ends_with('*') => {}
                ("*" | "?", _) => pattern.push_str(unit),
                (_, Some(set)) => {
                    pattern.push('[');
                    pattern.push_str(&set.strip_prefix('^').map_or_else(|| set.to_owned(), |set| format!("!{set}")));
                }
                _ => {
                    let one = unit.strip_prefix('\\').unwrap_or(unit);
                    name.push_str(one);
                    pattern.push_str(&Pattern::escape(one));
                    continue;
                }
            }
            is_pattern = true;
        }
        if !is_pattern {
            return Ok(Self::Name(name));
        }
        Ok(Self::Pattern(Pattern::new(&pattern).map_err(|error| error.to_string())?))
    }

    /// Whether a file or folder of this name is meant.
    pub(super) fn matches(&self, found: &str) -> bool {
        match self {
            Self::Name(name) => name == found,
            Self::Pattern(pattern) => {
                let is_asked_for = !is_hidden(found) || pattern.as_str().starts_with(['_', '.']);
                is_asked_for && pattern.matches_with(found, MATCHING)
            }
        }
    }
}

/// What a path says: one place, or all that fit a pattern.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// What stands before all parts: the root of this machine, or scheme and bucket with a slash.
    start: String,
    all: Vec<Vec<Part>>,
}

impl Places {
    /// The places of a path of this machine that is absolute, or of a location in a store.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
        let (start, path) = match split(path).filter(|_| is_stored(path)) {
            Some((authority, key)) => (format!("{authority}/"), key),
            None => ("/".to_owned(), path),
        };
        let place = |path: &String| parts(path).map(Part::parse).collect::<Result<Vec<_>, String>>();
        let all = written_out(path)?.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Self { start, all })
    }

    /// The path, when it is no pattern.
    pub(super) fn fixed(&self) -> Option<String> {
        let [place] = self.all.as_slice() else { return None };
        place.iter().all(|part| matches!(part, Part::Name(_))).then(|| self.base())
    }

    /// The longest path that all places are at or below.
    pub(super) fn base(&self) -> String {
        let mut bases = self.all.iter().map(|place| {
            place.iter().map_while(|part| match part {
                Part::Name(name) => Some(name.as_str()),
                Part::Pattern(_) => None,
            })
        });
        let mut base: Vec<&str> = bases.next().into_iter().flatten().collect();
        for other in bases {
            let same = base.iter().zip(other).take_while(|(one, other)| *one == other).count();
            base.truncate(same);
        }
        format!("{}{}", self.start, base.join("/"))
    }

    /// How many parts the places have; `None` when they differ in that.
    pub(super) fn depth(&self) -> Option<usize> {
        let mut depths = self.all.iter().map(Vec::len);
        let depth = depths.next()?;
        depths.all(|other| other == depth).then(|| self.above() + depth)
    }

    fn above(&self) -> usize {
        parts(&self.start).count()
    }

    /// Whether each of these places is at or below one of `others`, as they are written.
    pub(super) fn are_below(&self, others: &Self) -> bool {
        let is_below = |place: &[Part]| others.all.iter().any(|other| place.starts_with(other));
        self.start == others.start && self.all.iter().all(|place| is_below(place))
    }

    /// Each of the places, part by part.
    pub(super) fn each(&self) -> impl Iterator<Item = &[Part]> {
        self.all.iter().map(Vec::as_slice)
    }

    /// For each of the places that a location in the store is at or below, how many parts of the location are the place.
    pub(super) fn depths_above<'a>(&'a self, location: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        let above = self.above();
        self.all.iter().filter_map(move |place| {
            let depth = above + place.len();
            let mut parts = place.iter().zip(location.get(above..depth)?);
            parts.all(|(part, name)| part.matches(name)).then_some(depth)
        })
    }
}

/// A pattern for the names of files.
#[derive(Debug, Clone)]
pub(super) struct NameFilter(Vec<Part>);

impl NameFilter {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        written_out(text)?.iter().map(|text| Part::parse(text)).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|part| part.matches(name))
    }
}

/// The texts that a text with braces stands for, in their order.
fn written_out(text: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        match braces(&text)? {
            None => done.push(text),
            Some((before, alternatives, after)) => {
                open.extend(alternatives.iter().rev().map(|inside| format!("{before}{inside}{after}")));
            }
        }
        if done.len() + open.len() > MOST {
            return Err(format!("its braces stand for more than {MOST} patterns; write several sources, or wildcards"));
        }
    }
    Ok(done)
}

/// What is before the first braces of a text, the alternatives in them, and what is behind.
type Braces<'a> = (&'a str, Vec<&'a str>, &'a str);

fn braces(text: &str) -> Result<Option<Braces<'_>>, String> {
    let mut depth = 0_usize;
    let (mut before, mut inside) = ("", text);
    let mut alternatives = Vec::new();
    let mut rest = text;
    while let Some((unit, behind)) = unit(rest)? {
        let here = || inside.strip_suffix(rest).unwrap_or_default();
        match unit {
            "{" => {
                depth += 1;
                if depth == 1 {
                    (before, inside) = (here(), behind);
                }
            }
            "," if depth == 1 => {
                alternatives.push(here());
                inside = behind;
            }
            "}" if depth == 1 => {
                alternatives.push(here());
                return Ok(Some((before, alternatives, behind)));
            }
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = behind;
    }
    if depth > 0 {
        return Err("a `{` has no `}`; write `\\{` for the character itself".to_owned());
    }
    Ok(None)
}

/// The first unit of a pattern, and what is behind it: a set in brackets, a backslash with its character, or a character.
fn unit(text: &str) -> Result<Option<(&str, &str)>, String> {
    let mut chars = text.char_indices();
    let length = match chars.next() {
        None => return Ok(None),
        Some((_, '\\')) => {
            let escaped = chars.next().ok_or("it ends with a backslash; write `\\\\` for the character itself")?;
            1 + escaped.1.len_utf8()
        }
        Some((_, '[')) => {
            let is_negated = text.starts_with("[!") || text.starts_with("[^");
            // What stands first in a set is in it, even a `]`.
            let mut inside = chars.skip(1 + usize::from(is_negated));
            let end = inside.find(|(_, one)| *one == ']');
            1 + end.ok_or("a `[` has no `]`; write `\\[` for the character itself")?.0
        }
        Some((_, one)) => one.len_utf8(),
    };
    Ok(Some(text.split_at(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        NameFilter::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn signs_mean_what_they_mean_in_hadoop() {
        for (pattern, yes, no) in [
            ("*.json", "a.json", "a.csv"),
            ("**", "anything", ".hidden"),
            ("a***c", "abc", "abd"),
            ("a?c", "abc", "ac"),
            ("[a-c]x", "bx", "dx"),
            ("[^a-c]x", "dx", "bx"),
            ("[!a-c]x", "dx", "bx"),
            ("[]x]", "]", "y"),
            ("[{,}]", ",", "a"),
            ("\\*", "*", "a"),
            ("\\[a\\]*", "[a]b", "ab"),
            ("a\\{b,c\\}", "a{b,c}", "ab"),
            ("a,b}", "a,b}", "a"),
            ("ü[ä-ö]", "üä", "üx"),
        ] {
            assert!(fits(pattern, yes), "{pattern} {yes}");
            assert!(!fits(pattern, no), "{pattern} {no}");
        }
    }

    #[test]
    fn braces_are_written_out() {
        for (text, expected) in [
            ("/in/x", &["/in/x"][..]),
            ("/in/{a,b}/*.{csv,json}", &["/in/a/*.csv", "/in/a/*.json", "/in/b/*.csv", "/in/b/*.json"]),
            ("{a,b{c,d{e}},}x", &["ax", "bcx", "bdex", "x"]),
            ("/{a/b,c/d}/e", &["/a/b/e", "/c/d/e"]),
            ("\\{a,b}", &["\\{a,b}"]),
            ("{}", &[""]),
        ] {
            assert_eq!(written_out(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_way_out() {
        for (text, words) in [
            ("{a,b", "`\\{`"),
            ("a{b{c}", "`\\{`"),
            ("[ab", "`\\[`"),
            ("[^]", "`\\[`"),
            ("a\\", "backslash"),
            ("{0,1,2,3}{0,1,2,3}{0,1,2,3}{0,1,2,3}{0,1,2,3}", "more than 1000"),
        ] {
            let error = Places::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(Places::parse("/[a/b]").is_err(), "a set does not reach over a slash");
    }

    #[test]
    fn wildcards_do_not_find_what_is_hidden_unless_asked_for() {
        for hidden in ["_spark_metadata", "_millstream", "_delta_log", ".tmp", "x._COPYING_"] {
            assert!(!fits("*", hidden) && !fits("?*", hidden) && !fits("[_.x]*", hidden), "{hidden}");
            assert!(Part::parse(hidden).unwrap().matches(hidden), "{hidden}");
        }
        assert!(fits("_sp*", "_spark_metadata") && fits(".t*", ".tmp") && fits("*", "_day=1"));
    }

    #[test]
    fn places_have_a_base_and_perhaps_a_depth() {
        for (path, base, fixed, depth) in [
            ("/in/a b/", "/in/a b", true, Some(2)),
            ("/in/a\\*b", "/in/a*b", true, Some(2)),
            ("/in/x*/y", "/in", false, Some(3)),
            ("/in/{ab,ac}/y", "/in", false, Some(3)),
            ("/in/{a/b,c}", "/in", false, None),
            ("/in/{day=1/a,day=1/b}", "/in/day=1", false, Some(3)),
            ("s3://b/in/100%", "s3://b/in/100%", true, Some(4)),
            ("s3://b/", "s3://b/", true, Some(2)),
            ("hdfs://[::1]:9000/in/*", "hdfs://[::1]:9000/in", false, Some(4)),
        ] {
            let places = Places::parse(path).unwrap();
            assert_eq!((places.base().as_str(), places.depth()), (base, depth), "{path}");
            assert_eq!(places.fixed().is_some(), fixed, "{path}");
        }
        let below = |path: &str, base: &str| Places::parse(path).unwrap().are_below(&Places::parse(base).unwrap());
        assert!(below("/in/{a,b}/c", "/in") && below("/in/*/c", "/in/*") && below("/in", "/in"));
        assert!(!below("/in/{a,b}/c", "/in/a") && !below("/in", "/in/a") && !below("s3://a/in", "s3://b/in"));
    }
}
