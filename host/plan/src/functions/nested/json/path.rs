//! Paths of `get_json_object`: `$.a.b`, `$['a']`, `$.c[1]`, `$.c[*].d`.
//!
//! A wildcard in the place of a name (`$.*`) is read and finds nothing, as in Spark. With a wildcard in the place of an index, several matches become an array, one match stands alone, and a wildcard below a wildcard keeps
//! or flattens the inner arrays as Hive and Spark do. A JSON null under a name is no match.

use super::text::{Json, Node, write};

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// `.name`
    Name(String),
    /// `.*`
    AnyName,
    /// `[i]`
    Index(usize),
    /// `[*]`
    AnyIndex,
}

/// Reads a path; `None` when it is malformed.
pub(super) fn parse(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']")?;
            let name = &after[..end];
            steps.push(if name == "*" { Step::AnyName } else { Step::Name(name.to_owned()) });
            rest = &after[end + 2..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = after.find(']')?;
            let index = &after[..end];
            steps.push(if index == "*" { Step::AnyIndex } else { Step::Index(index.trim_start().parse().ok()?) });
            rest = &after[end + 1..];
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let name = after.get(..end).filter(|name| !name.is_empty())?;
            steps.push(if name == "*" { Step::AnyName } else { Step::Name(name.to_owned()) });
            rest = &after[end..];
        }
    }
    Some(steps)
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// A string stands without quotes.
    Raw,
    /// A string stands with quotes, in an array.
    Quoted,
    /// As quoted, and arrays dissolve into the one around them.
    Flat,
}

/// What the path finds, as text.
pub(super) fn find(json: &Json<'_>, steps: &[Step]) -> Option<String> {
    let mut found = Vec::new();
    collect(json, steps, Style::Raw, &mut found).then(|| found.concat())
}

/// Appends the texts of what is found, each a whole value; answers whether anything was.
fn collect(json: &Json<'_>, steps: &[Step], style: Style, found: &mut Vec<String>) -> bool {
    match (&json.node, steps) {
        (Node::Text(text), []) if style == Style::Raw => {
            found.push(text.to_string());
            true
        }
        (Node::Array(elements), []) if style == Style::Flat => {
            elements.iter().fold(false, |any, element| collect(element, steps, style, found) | any)
        }
        (_, []) => {
            let mut text = String::new();
            write(json, &mut text);
            found.push(text);
            true
        }
        (Node::Object(fields), [Step::Name(wanted), rest @ ..]) => fields
            .iter()
            .filter(|(name, value)| name == wanted && value.node != Node::Null)
            .any(|(_, value)| collect(value, rest, style, found)),
        (Node::Array(elements), [Step::AnyIndex, Step::AnyIndex, rest @ ..]) => {
            let mut inner = Vec::new();
            let any = elements.iter().fold(false, |any, element| collect(element, rest, Style::Flat, &mut inner) | any);
            found.push(format!("[{}]", inner.join(",")));
            any
        }
        (Node::Array(elements), [Step::AnyIndex, rest @ ..]) if style != Style::Quoted => {
            let next = if style == Style::Flat { Style::Flat } else { Style::Quoted };
            let mut inner = Vec::new();
            let matches = elements.iter().filter(|element| collect(element, rest, next, &mut inner)).count();
            match matches {
                0 => return false,
                1 => found.push(inner.join(",")),
                _ => found.push(format!("[{}]", inner.join(","))),
            }
            true
        }
        (Node::Array(elements), [Step::AnyIndex, rest @ ..]) => {
            let mut inner = Vec::new();
            let any = elements.iter().fold(false, |any, element| collect(element, rest, style, &mut inner) | any);
            found.push(format!("[{}]", inner.join(",")));
            any
        }
        (Node::Array(elements), [Step::Index(index), rest @ ..]) => {
            let style = if rest.first() == Some(&Step::AnyIndex) { Style::Quoted } else { style };
            elements.get(*index).is_some_and(|element| collect(element, rest, style, found))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    fn get(json: &str, path: &str) -> Option<String> {
        find(&text::parse(json, text::Leniency::ASKING)?, &parse(path)?)
    }

    #[test]
    fn names_and_indexes_lead_to_one_value() {
        let json = r#"{"a":{"b":[1,"x",2.50,null]},"k k":true,"n":null}"#;
        assert_eq!(get(json, "$.a.b[1]").as_deref(), Some("x"));
        assert_eq!(get(json, "$.a.b[2]").as_deref(), Some("2.5"));
        assert_eq!(get(json, "$.a.b[3]").as_deref(), Some("null"));
        assert_eq!(get(json, "$.a.b[4]"), None);
        assert_eq!(get(json, "$['k k']").as_deref(), Some("true"));
        assert_eq!(get(json, "$.n"), None);
        assert_eq!(get(json, "$.a").as_deref(), Some(r#"{"b":[1,"x",2.5,null]}"#));
        assert_eq!(get(json, "a.b"), None);
    }

    #[test]
    fn a_wildcard_gives_an_array_of_several_and_a_single_match_alone() {
        let json = r#"[{"a":"x"},{"a":"y"},{"b":1}]"#;
        assert_eq!(get(json, "$[*].a").as_deref(), Some(r#"["x","y"]"#));
        assert_eq!(get(json, "$[*].b").as_deref(), Some("1"));
        assert_eq!(get(json, "$[*].c"), None);
        assert_eq!(get("[[1,2],[3]]", "$[*][*]").as_deref(), Some("[1,2,3]"));
    }
}
