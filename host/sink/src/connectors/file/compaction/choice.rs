//! Which small files are put together next: a pure decision.

use super::Group;
use millstream_client::file_log::ReplacedFile;
use std::collections::{BTreeMap, VecDeque};

/// Files that become one were committed within this time. A source that forgets files by their age (`maxFileAge`, a week)
/// then can still tell whether it has had some of them.
const SPAN_MS: i64 = 24 * 3_600_000;
/// How many files one batch reads again at most, unless a folder may have more.
const FILES_AT_ONCE: usize = 1_000;

/// A small file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Small {
    pub(super) file: ReplacedFile,
    /// How many rows it has; 0 when the log does not say.
    pub(super) rows: u64,
}

/// The folder in the name of a file, with a slash at the end, or empty.
pub(super) fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |slash| &name[..=slash])
}

/// The groups of one batch: of folders with `after` small files or more the oldest ones, together no longer than
/// `target_bytes`.
pub(super) fn choose(small: &BTreeMap<String, VecDeque<Small>>, after: usize, target_bytes: u64) -> Vec<Group> {
    let (mut bytes_left, mut files_left) = (target_bytes, FILES_AT_ONCE.max(after));
    let mut groups = Vec::new();
    for (folder, files) in small.iter().filter(|(_, files)| files.len() >= after) {
        // A file that is alone in its day is passed over.
        for first in 0..files.len() {
            let group = group(files.iter().skip(first), bytes_left, files_left);
            if group.len() >= 2 {
                bytes_left -= group.iter().map(|small| small.file.bytes).sum::<u64>();
                files_left -= group.len();
                groups.push(Group { folder: folder.clone(), files: group });
                break;
            }
        }
    }
    groups
}

/// The first files, as far as they go together.
fn group<'a>(files: impl Iterator<Item = &'a Small>, mut bytes_left: u64, files_left: usize) -> Vec<Small> {
    let mut group: Vec<Small> = Vec::new();
    for small in files.take(files_left) {
        let began_ms = group.first().map_or(small.file.committed_ms, |first| first.file.committed_ms);
        if small.file.bytes > bytes_left || small.file.committed_ms.saturating_sub(began_ms) > SPAN_MS {
            break;
        }
        bytes_left -= small.file.bytes;
        group.push(small.clone());
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(given: &[(&str, u64, i64)]) -> BTreeMap<String, VecDeque<Small>> {
        let mut small: BTreeMap<String, VecDeque<Small>> = BTreeMap::new();
        for (name, bytes, committed_ms) in given {
            let file = ReplacedFile { name: (*name).to_owned(), bytes: *bytes, committed_ms: *committed_ms };
            small.entry(folder_of(name).to_owned()).or_default().push_back(Small { file, rows: 1 });
        }
        small
    }

    fn chosen(given: &[(&str, u64, i64)], after: usize, target: u64) -> Vec<Vec<String>> {
        let groups = choose(&files(given), after, target);
        groups.iter().map(|group| group.files.iter().map(|small| small.file.name.clone()).collect()).collect()
    }

    #[test]
    fn the_oldest_of_a_folder_with_enough_of_them_are_taken_up_to_the_target() {
        let given = [("k=a/1", 4, 0), ("k=b/2", 4, 0), ("k=a/3", 4, 1), ("k=a/4", 4, 2)];
        assert_eq!(chosen(&given, 3, 100), [["k=a/1", "k=a/3", "k=a/4"]]);
        assert_eq!(chosen(&given, 3, 9), [["k=a/1", "k=a/3"]]);
        assert!(chosen(&given, 3, 7).is_empty(), "two of them would be too long");
        assert!(chosen(&given, 4, 100).is_empty());
    }

    #[test]
    fn a_batch_rewrites_no_more_than_one_target_in_all_folders() {
        let given = [("a/1", 4, 0), ("a/2", 4, 0), ("b/1", 4, 0), ("b/2", 4, 0), ("c/1", 1, 0), ("c/2", 1, 0)];
        assert_eq!(chosen(&given, 2, 12), [["a/1", "a/2"], ["c/1", "c/2"]]);
    }

    #[test]
    fn files_of_one_day_go_together_and_one_that_is_alone_does_not_hinder_them() {
        let day = SPAN_MS;
        let given = [("1", 1, 0), ("2", 1, 2 * day), ("3", 1, 3 * day), ("4", 1, 3 * day + 1)];
        assert_eq!(chosen(&given, 2, 100), [["2", "3"]]);
    }
}
