//! Which topics and partitions are read: `assign`, `subscribe` or `subscribePattern`, exactly one.

use super::offset::TopicPartition;
use crate::SourceError;
use millstream_common::{OptionError, Options};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Topics that Kafka keeps for itself; a pattern does not mean them.
const INTERNAL: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// Which partitions are read.
#[derive(Debug, Clone)]
pub(super) enum Topics {
    /// These.
    Assign(BTreeSet<TopicPartition>),
    /// All of these topics.
    Subscribe(BTreeSet<String>),
    /// All of the topics whose whole name matches.
    Pattern {
        /// As the user wrote it.
        text: String,
        /// The same, for whole names.
        regex: Regex,
    },
}

impl Topics {
    pub(super) fn new(owner: &str, options: &Options) -> Result<Self, SourceError> {
        let names = ["assign", "subscribe", "subscribePattern"];
        let given: Vec<(&str, &str)> = names.iter().filter_map(|name| Some((*name, options.get(name)?))).collect();
        let (name, value) = match given.as_slice() {
            [one] => *one,
            [] => {
                let option = "subscribe (or assign, or subscribePattern)".to_owned();
                return Err(OptionError::Missing { owner: owner.to_owned(), option }.into());
            }
            [_, (second, value), ..] => {
                let reason = format!("{} is set too; keep one of assign, subscribe and subscribePattern", given[0].0);
                return Err(Options::invalid(owner, second, value, &reason).into());
            }
        };
        let invalid = |reason: &str| SourceError::from(Options::invalid(owner, name, value, reason));
        match name {
            "assign" => assign(value).map(Self::Assign).map_err(|reason| invalid(&reason)),
            "subscribe" => {
                let topics: BTreeSet<String> =
                    value.split(',').map(str::trim).filter(|topic| !topic.is_empty()).map(str::to_owned).collect();
                match topics.iter().find(|topic| !is_topic(topic)) {
                    Some(topic) => Err(invalid(&format!("`{topic}` is no name of a topic; separate topics by commas"))),
                    None if topics.is_empty() => Err(invalid("name one topic or more, separated by commas")),
                    None => Ok(Self::Subscribe(topics)),
                }
            }
            _ if value.trim().is_empty() => Err(invalid("write a regular expression for names of topics")),
            _ => match Regex::new(&format!("^(?:{value})$")) {
                Ok(regex) => Ok(Self::Pattern { text: value.to_owned(), regex }),
                Err(error) => {
                    let said = error.to_string();
                    let last = said.lines().last().unwrap_or_default();
                    Err(invalid(&format!(
                        "it is no regular expression without look-around and back-references: {last}"
                    )))
                }
            },
        }
    }

    /// The partitions that are read, of those there are.
    pub(super) fn choose(&self, there: &BTreeMap<String, Vec<i32>>) -> BTreeSet<TopicPartition> {
        let of = |(topic, partitions): (&String, &Vec<i32>)| {
            let partitions = partitions.iter().map(|partition| TopicPartition::new(topic, *partition));
            partitions.collect::<Vec<_>>()
        };
        match self {
            Self::Assign(wanted) => there.iter().flat_map(of).filter(|place| wanted.contains(place)).collect(),
            Self::Subscribe(topics) => there.iter().filter(|(topic, _)| topics.contains(*topic)).flat_map(of).collect(),
            Self::Pattern { .. } => there.iter().filter(|(topic, _)| self.names(topic)).flat_map(of).collect(),
        }
    }

    /// Whether a topic is meant.
    pub(super) fn names(&self, topic: &str) -> bool {
        match self {
            Self::Assign(places) => places.iter().any(|place| &*place.topic == topic),
            Self::Subscribe(topics) => topics.contains(topic),
            Self::Pattern { regex, .. } => !INTERNAL.contains(&topic) && regex.is_match(topic),
        }
    }

    /// The topics by name; `None` for a pattern, which all topics must be held against.
    pub(super) fn by_name(&self) -> Option<BTreeSet<&str>> {
        match self {
            Self::Assign(places) => Some(places.iter().map(|place| &*place.topic).collect()),
            Self::Subscribe(topics) => Some(topics.iter().map(String::as_str).collect()),
            Self::Pattern { .. } => None,
        }
    }
}

fn assign(text: &str) -> Result<BTreeSet<TopicPartition>, String> {
    const EXPECTED: &str = "write partitions by topic as JSON, such as {\"clicks\":[0,1]}";
    let json: BTreeMap<String, Vec<i32>> = serde_json::from_str(text).map_err(|_| EXPECTED.to_owned())?;
    let mut places = BTreeSet::new();
    for (topic, partitions) in &json {
        if !is_topic(topic) || partitions.iter().any(|partition| *partition < 0) {
            return Err(EXPECTED.to_owned());
        }
        places.extend(partitions.iter().map(|partition| TopicPartition::new(topic, *partition)));
    }
    if places.is_empty() { Err(EXPECTED.to_owned()) } else { Ok(places) }
}

/// Whether Kafka admits the name.
fn is_topic(name: &str) -> bool {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    !name.is_empty() && name.len() <= 249 && name != "." && name != ".." && name.chars().all(is_legal)
}

impl fmt::Display for Topics {
    /// As Spark names it: `Subscribe[clicks, views]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assign(places) => {
                let places: Vec<String> = places.iter().map(|p| format!("{}-{}", p.topic, p.partition)).collect();
                write!(f, "Assign[{}]", places.join(", "))
            }
            Self::Subscribe(topics) => {
                write!(f, "Subscribe[{}]", topics.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            }
            Self::Pattern { text, .. } => write!(f, "SubscribePattern[{text}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(name: &str, value: &str) -> Result<Topics, SourceError> {
        Topics::new("source `t`", &Options::new().with(name, value))
    }

    fn there() -> BTreeMap<String, Vec<i32>> {
        ["clicks", "clicks-eu", "views", "__consumer_offsets"].map(|topic| (topic.to_owned(), vec![0, 1])).into()
    }

    #[test]
    fn each_way_names_its_partitions() {
        let assign = topics("assign", r#"{"clicks":[1,7]}"#).unwrap();
        assert_eq!(assign.to_string(), "Assign[clicks-1, clicks-7]");
        assert_eq!(assign.choose(&there()), BTreeSet::from([TopicPartition::new("clicks", 1)]));
        let subscribe = topics("subscribe", " views, clicks ,").unwrap();
        assert_eq!(subscribe.to_string(), "Subscribe[clicks, views]");
        assert_eq!(subscribe.choose(&there()).len(), 4);
        let pattern = topics("SUBSCRIBEPATTERN", "clicks|v.*").unwrap();
        assert_eq!(pattern.to_string(), "SubscribePattern[clicks|v.*]");
        let chosen = pattern.choose(&there());
        assert!(chosen.iter().all(|place| ["clicks", "views"].contains(&&*place.topic)), "whole names: {chosen:?}");
        assert!(!topics("subscribePattern", ".*").unwrap().names("__consumer_offsets"));
    }

    #[test]
    fn exactly_one_way_and_only_sound_values() {
        let none = Topics::new("source `t`", &Options::new()).unwrap_err();
        assert!(none.to_string().contains("`subscribe (or"), "{none}");
        let two = Options::new().with("subscribe", "a").with("assign", r#"{"a":[0]}"#);
        let two = Topics::new("source `t`", &two).unwrap_err();
        assert!(two.to_string().contains("keep one of assign, subscribe and subscribePattern"), "{two}");
        for (name, value) in [
            ("assign", "clicks"),
            ("assign", "{}"),
            ("assign", r#"{"t":[-1]}"#),
            ("assign", r#"{"t":["0"]}"#),
            ("subscribe", ","),
            ("subscribe", "a b"),
            ("subscribePattern", "("),
            ("subscribePattern", "a(?=b)"),
            ("subscribePattern", " "),
        ] {
            assert!(matches!(topics(name, value), Err(SourceError::Option(_))), "{name} {value}");
        }
    }
}
