//! Names and texts as statements write them.

use super::Product;

impl Product {
    /// A name in quotes.
    pub fn quote(self, name: &str) -> String {
        let mark = match self {
            Self::Postgres => '"',
            Self::Mysql => '`',
        };
        let doubled: String = [mark, mark].iter().collect();
        format!("{mark}{}{mark}", name.replace(mark, &doubled))
    }

    /// A text in quotes.
    pub fn literal(self, text: &str) -> String {
        let text = text.replace('\'', "''");
        match self {
            Self::Postgres => format!("'{text}'"),
            Self::Mysql => format!("'{}'", text.replace('\\', "\\\\")),
        }
    }

    /// What becomes of a name without quotes.
    fn fold(self, name: &str) -> String {
        match self {
            Self::Postgres => name.to_lowercase(),
            Self::Mysql => name.to_owned(),
        }
    }
}

/// The name of a table, in parts: `table` or `schema.table`, each part quoted or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Schema or database, when it is named.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

impl TableName {
    /// Takes a name apart; what is not quoted is folded as the server folds it. Answers how to write one.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(product: Product, text: &str) -> Result<Self, String> {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = text.trim();
        loop {
            let (part, behind) = match rest.chars().next() {
                Some(quote @ ('"' | '`')) => quoted(&rest[1..], quote)?,
                _ => {
                    let end = rest.find('.').unwrap_or(rest.len());
                    let part = product.fold(rest[..end].trim());
                    if part.contains(['(', ')', ';']) {
                        return Err("write `table` or `schema.table`".to_owned());
                    }
                    (part, &rest[end..])
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
        match parts.is_empty() {
            true => Ok(Self { schema, table }),
            false => Err("write `table` or `schema.table`".to_owned()),
        }
    }

    /// Another table at the same place.
    pub fn sibling(&self, table: &str) -> Self {
        Self { schema: self.schema.clone(), table: table.to_owned() }
    }

    /// As statements write it.
    pub fn quoted(&self, product: Product) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", product.quote(schema), product.quote(&self.table)),
            None => product.quote(&self.table),
        }
    }

    /// As a person writes it.
    pub fn shown(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.table),
            None => self.table.clone(),
        }
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
        let parse = |text| TableName::parse(Product::Postgres, text);
        let name = parse("Shop.\"My \"\"Words\"\".x (1)\"").unwrap();
        assert_eq!((name.schema.as_deref(), name.table.as_str()), (Some("shop"), "My \"Words\".x (1)"));
        assert_eq!(name.quoted(Product::Postgres), "\"shop\".\"My \"\"Words\"\".x (1)\"");
        assert_eq!(parse("Counts").unwrap().shown(), "counts");
        assert_eq!(TableName::parse(Product::Mysql, "`a``b`.C").unwrap().quoted(Product::Mysql), "`a``b`.`C`");
        for text in ["", ".", "a.", "a.b.c", "\"a", "\"a\"b", "(SELECT 1)", "a; DROP TABLE b"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_text_cannot_end_its_quotes() {
        assert_eq!(Product::Postgres.literal("it's \\"), "'it''s \\'");
        assert_eq!(Product::Mysql.literal("it's \\"), "'it''s \\\\'");
    }
}
