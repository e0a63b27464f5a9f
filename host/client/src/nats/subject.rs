//! Subjects: words with dots between, and filters over them.

/// Whether a message can have this subject: words that are not empty, without spaces and wildcards.
pub fn is_subject(text: &str) -> bool {
    is_filter(text) && !text.split('.').any(|word| matches!(word, "*" | ">"))
}

/// Whether a text is a filter: a subject in which `*` stands for any word and `>`, as the last one, for all that follow.
pub fn is_filter(text: &str) -> bool {
    let mut words = text.split('.').peekable();
    while let Some(word) = words.next() {
        let is_plain = !word.is_empty() && !word.contains(|sign: char| sign.is_whitespace() || sign.is_control());
        if !is_plain || (word == ">" && words.peek().is_some()) {
            return false;
        }
    }
    true
}

/// Whether a filter takes a subject. Of a second filter in the place of the subject: whether it takes all that that one does.
pub fn matches(filter: &str, subject: &str) -> bool {
    let (mut filters, mut words) = (filter.split('.'), subject.split('.'));
    loop {
        match (filters.next(), words.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(word)) if word != ">" => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

/// Whether there is a subject that two filters take.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (Some(">"), Some(_)) | (Some(_), Some(">")) | (None, None) => return true,
            (Some(left), Some(right)) if left == right || left == "*" || right == "*" => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_overlap_when_they_take_one_subject() {
        for (one, other, is_both) in [
            ("a.*", "*.b", true),
            ("a.>", "a.b.c", true),
            ("*.>", "a.b", true),
            ("a.*", "b.*", false),
            ("a.*", "a.*.c", false),
            ("a.>", "a", false),
        ] {
            assert_eq!((overlap(one, other), overlap(other, one)), (is_both, is_both), "{one} {other}");
        }
    }

    #[test]
    fn filters_take_words_and_what_follows() {
        for (filter, subject, is_taken) in [
            ("orders", "orders", true),
            ("orders", "orders.new", false),
            ("orders.*", "orders.new", true),
            ("orders.*", "orders", false),
            ("orders.*", "orders.new.eu", false),
            ("orders.*.eu", "orders.new.eu", true),
            ("orders.>", "orders.new.eu", true),
            ("orders.>", "orders", false),
            (">", "orders", true),
            ("orders.>", "orders.*", true),
            ("orders.*", "orders.>", false),
            ("orders.new", "orders.*", false),
        ] {
            assert_eq!(matches(filter, subject), is_taken, "{filter} {subject}");
        }
    }

    #[test]
    fn what_is_no_subject_is_known() {
        for (text, filter, subject) in [
            ("a.b", true, true),
            ("a.*", true, false),
            (">", true, false),
            ("a.b*", true, true),
            ("a.>.b", false, false),
            ("a..b", false, false),
            ("", false, false),
            ("a b", false, false),
            ("a.", false, false),
        ] {
            assert_eq!((is_filter(text), is_subject(text)), (filter, subject), "{text}");
        }
    }
}
