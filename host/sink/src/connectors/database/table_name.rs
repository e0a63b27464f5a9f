//! The name of a table: `table` or `schema.table`, each part quoted or not.

/// A table's name, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName {
    /// Schema or database, when it is named.
    pub(crate) schema: Option<String>,
    /// The table.
    pub(crate) table: String,
}

impl TableName {
    /// Takes a name apart. What is not quoted goes through `fold`.
    pub(crate) fn parse(text: &str, fold: fn(&str) -> String) -> Result<Self, String> {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = text.trim();
        loop {
            let (part, behind) = match rest.chars().next() {
                Some(quote @ ('"' | '`')) => quoted(&rest[1..], quote)?,
                _ => {
                    let end = rest.find('.').unwrap_or(rest.len());
                    (fold(rest[..end].trim()), &rest[end..])
                }
            };
            if part.is_empty() || part.contains(['\0', '\n']) {
                return Err("write `table` or `schema.table`".to_owned());
            }
            parts.push(part);
            match behind.trim_start().strip_prefix('.') {
                Some(next) => rest = next.trim_start(),
                None if behind.trim().is_empty() => break,
                None => return Err("something stands behind the closing quote".to_owned()),
            }
        }
        let table = parts.pop().unwrap_or_default();
        let schema = parts.pop();
        if !parts.is_empty() || table.contains(['(', ')', ';']) {
            return Err("write `table` or `schema.table`".to_owned());
        }
        Ok(Self { schema, table })
    }

    /// Another table at the same place.
    pub(crate) fn sibling(&self, table: &str) -> Self {
        Self { schema: self.schema.clone(), table: table.to_owned() }
    }

    /// As statements write it.
    pub(crate) fn quoted(&self, quote: impl Fn(&str) -> String) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quote(schema), quote(&self.table)),
            None => quote(&self.table),
        }
    }

    /// As a person writes it.
    pub(crate) fn shown(&self) -> String {
        self.quoted(str::to_owned)
    }
}

/// The text up to the closing quote, and what stands behind it; a doubled quote is one.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut part = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, next)) = chars.next() {
        if next != quote {
            part.push(next);
        } else if chars.next_if(|(_, after)| *after == quote).is_some() {
            part.push(quote);
        } else {
            return Ok((part, &text[at + 1..]));
        }
    }
    Err("a quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_or_two_parts_and_quotes_keep_their_case() {
        let parse = |text| TableName::parse(text, str::to_lowercase);
        let name = parse("Shop.\"My \"\"Words\"\".x\"").unwrap();
        assert_eq!((name.schema.as_deref(), name.table.as_str()), (Some("shop"), "My \"Words\".x"));
        assert_eq!(parse("Counts").unwrap().shown(), "counts");
        for text in ["", ".", "a.", "a.b.c", "\"a", "\"a\"b", "(SELECT 1)", "a; DROP TABLE b"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
