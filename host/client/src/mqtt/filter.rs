//! What may stand where a topic is named: filters of topics to read, names of topics to write to.

/// A packet has 16 bits for the length of a name.
const LONGEST: usize = u16::MAX as usize;

/// What is wrong with a filter of topics, which may have `+` for one level, `#` for all levels below, and
/// `$share/GROUP/` in front.
pub fn filter_fault(filter: &str) -> Option<&'static str> {
    let filter = match filter.strip_prefix("$share/") {
        None => filter,
        Some(rest) => match rest.split_once('/') {
            Some((group, filter)) if !group.is_empty() && !group.contains(['+', '#']) => filter,
            _ => return Some("write a shared subscription as `$share/GROUP/FILTER`"),
        },
    };
    if let Some(fault) = name_fault(filter) {
        return Some(fault);
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        match level {
            "+" => {}
            "#" if levels.peek().is_none() => {}
            "#" => return Some("`#` may only be the last level"),
            level if level.contains(['+', '#']) => return Some("`+` and `#` stand for whole levels"),
            _ => {}
        }
    }
    None
}

/// What is wrong with the name of a topic to write to.
pub fn topic_fault(topic: &str) -> Option<&'static str> {
    if topic.contains(['+', '#']) {
        return Some("a topic to write to has no `+` and no `#`");
    }
    name_fault(topic)
}

fn name_fault(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("a topic has a name"),
        name if name.len() > LONGEST => Some("names of topics have at most 65535 bytes"),
        name if name.contains('\0') => Some("names of topics have no NUL"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_wildcards_for_whole_levels() {
        for filter in ["a", "/", "a/+/c", "+", "#", "a/#", "+/+/#", "$SYS/#", "$share/g/a/#", "a b/ä"] {
            assert_eq!(filter_fault(filter), None, "{filter}");
        }
        for filter in ["", "a#", "a/#/b", "a+/b", "$share/g", "$share//a", "$share/+/a", "$share/g/", "a\0"] {
            assert!(filter_fault(filter).is_some(), "{filter}");
        }
    }

    #[test]
    fn a_topic_to_write_to_has_none() {
        assert_eq!(topic_fault("a/b c/ä"), None);
        for topic in ["", "a/+", "#", "a\0"] {
            assert!(topic_fault(topic).is_some(), "{topic}");
        }
    }
}
