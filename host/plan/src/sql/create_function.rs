//! `CREATE FUNCTION … USING COMPONENT` in front of a query.
//!
//! ```sql
//! CREATE TEMPORARY FUNCTION geometric_mean USING COMPONENT 'stats.wasm';
//! SELECT route, geometric_mean(ms) AS ms FROM requests GROUP BY route
//! ```
//!
//! Read before anything is planned: whoever loads plugins asks for the statements and makes plugins of their components;
//! the planner asks again, checks that a plugin has each of the functions, and plans what is left of the text. A function
//! lives as long as the query, so TEMPORARY says nothing new; what else a component has can be called as well.

use super::dialect::StreamingSqlDialect;
use crate::PlanError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::collections::{BTreeMap, BTreeSet};

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateFunction {
    /// The function's name, in lower case.
    pub name: String,
    /// The component's file, as it is written.
    pub component: String,
}

/// The statements in front of a query, and the query.
///
/// # Errors
/// [`PlanError::Sql`] for a statement that begins with CREATE and is no such one, and for a function that is created twice
/// without OR REPLACE.
pub fn leading_functions(sql: &str) -> Result<(Vec<CreateFunction>, &str), PlanError> {
    // What cannot be cut into words is told of by the parser of the query.
    let dialect = StreamingSqlDialect::default();
    let Ok(tokens) = Tokenizer::new(&dialect, sql).with_unescape(false).tokenize_with_location() else {
        return Ok((Vec::new(), sql));
    };
    let mut words = Words { tokens: &tokens, next: 0 };
    let mut functions: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let rest = words.place();
        if !words.takes("create") {
            if functions.is_empty() {
                return Ok((Vec::new(), sql));
            }
            return Ok((
                functions.into_iter().map(|(name, component)| CreateFunction { name, component }).collect(),
                &sql[rest.map_or(sql.len(), |place| offset(sql, place))..],
            ));
        }
        let replaces = words.takes("or") && words.demands("replace")?;
        let _ = words.takes("temporary") || words.takes("temp");
        words.demands("function")?;
        let name = words.name()?;
        words.demands("using")?;
        words.demands("component")?;
        let component = words.text()?;
        if functions.insert(name.clone(), component).is_some() && !replaces {
            return Err(wrong(format!(
                "the function `{name}` is created twice; write CREATE OR REPLACE, or leave one out"
            )));
        }
        words.ends()?;
    }
}

/// The query behind the statements in front of it; each of their functions is one of `known`.
///
/// # Errors
/// As [`leading_functions`], and for a function that no plugin has.
pub(crate) fn without_functions<'a>(sql: &'a str, known: &BTreeSet<String>) -> Result<&'a str, PlanError> {
    let (functions, rest) = leading_functions(sql)?;
    match functions.iter().find(|function| !known.contains(&function.name)) {
        None => Ok(rest),
        Some(CreateFunction { name, component }) => {
            let known =
                if known.is_empty() { "none".into() } else { known.iter().cloned().collect::<Vec<_>>().join(", ") };
            Err(wrong(format!(
                "the component `{component}` has no function `{name}`; functions of plugins are: {known}"
            )))
        }
    }
}

fn wrong(message: String) -> PlanError {
    PlanError::Sql { message }
}

/// The tokens that are no space.
struct Words<'a> {
    tokens: &'a [TokenWithSpan],
    next: usize,
}

impl<'a> Words<'a> {
    fn peek(&mut self) -> Option<&'a TokenWithSpan> {
        while let Some(token) = self.tokens.get(self.next) {
            match token.token {
                Token::Whitespace(_) => self.next += 1,
                Token::EOF => return None,
                _ => return Some(token),
            }
        }
        None
    }

    fn place(&mut self) -> Option<Location> {
        self.peek().map(|token| token.span.start)
    }

    /// Takes a word if it is the next.
    fn takes(&mut self, word: &str) -> bool {
        let is_next = matches!(
            self.peek(),
            Some(TokenWithSpan { token: Token::Word(next), .. }) if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word)
        );
        self.next += usize::from(is_next);
        is_next
    }

    fn demands(&mut self, word: &str) -> Result<bool, PlanError> {
        if self.takes(word) { Ok(true) } else { Err(self.unexpected(&word.to_uppercase())) }
    }

    fn name(&mut self) -> Result<String, PlanError> {
        match self.peek() {
            Some(TokenWithSpan { token: Token::Word(name), .. }) => {
                self.next += 1;
                Ok(name.value.to_lowercase())
            }
            _ => Err(self.unexpected("the function's name")),
        }
    }

    fn text(&mut self) -> Result<String, PlanError> {
        match self.peek() {
            Some(TokenWithSpan {
                token: Token::SingleQuotedString(text) | Token::DoubleQuotedString(text), ..
            }) if !text.is_empty() => {
                self.next += 1;
                Ok(text.clone())
            }
            _ => Err(self.unexpected("the component's file in quotes")),
        }
    }

    fn ends(&mut self) -> Result<(), PlanError> {
        match self.peek() {
            Some(TokenWithSpan { token: Token::SemiColon, .. }) => {
                self.next += 1;
                Ok(())
            }
            None => Ok(()),
            _ => Err(self.unexpected("a semicolon")),
        }
    }

    fn unexpected(&mut self, wanted: &str) -> PlanError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |token| format!("`{}`", token.token));
        wrong(format!(
            "expected {wanted}, found {found}: what can be created is a function, as in CREATE FUNCTION name USING COMPONENT \
             'file.wasm'"
        ))
    }
}

/// Where a line and column are in the text.
fn offset(text: &str, place: Location) -> usize {
    let (mut line, mut column) = (1, 1);
    for (offset, letter) in text.char_indices() {
        if (line, column) == (place.line, place.column) {
            return offset;
        }
        (line, column) = if letter == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> (Vec<(String, String)>, &str) {
        let (functions, rest) = leading_functions(sql).unwrap();
        (functions.into_iter().map(|function| (function.name, function.component)).collect(), rest)
    }

    fn refused(sql: &str) -> String {
        leading_functions(sql).unwrap_err().to_string()
    }

    #[test]
    fn statements_stand_in_front_of_the_query_and_the_query_stays_as_it_is() {
        let pair = |name: &str, file: &str| (name.to_owned(), file.to_owned());
        let (functions, rest) = read(
            "-- ours\nCREATE FUNCTION Mean USING COMPONENT 'stats.wasm';\n/* é */ create or replace temporary function\n  \
             top_k using component 'a;b.wasm' ;\n\n  SELECT 'CREATE FUNCTION é; ' AS x -- end",
        );
        assert_eq!(functions, [pair("mean", "stats.wasm"), pair("top_k", "a;b.wasm")]);
        assert_eq!(rest, "SELECT 'CREATE FUNCTION é; ' AS x -- end");
        assert_eq!(read("  SELECT 1"), (vec![], "  SELECT 1"));
        assert_eq!(read("SELECT 'open"), (vec![], "SELECT 'open"));
        assert_eq!(read("CREATE FUNCTION f USING COMPONENT 'a'"), (vec![pair("f", "a")], ""));
        let twice = "CREATE FUNCTION f USING COMPONENT 'a'; CREATE OR REPLACE FUNCTION f USING COMPONENT 'b'; SELECT 1";
        assert_eq!(read(twice), (vec![pair("f", "b")], "SELECT 1"));
    }

    #[test]
    fn a_function_that_is_created_is_there() {
        let known = BTreeSet::from(["f".to_owned()]);
        assert_eq!(without_functions("CREATE FUNCTION F USING COMPONENT 'a'; SELECT 1", &known).unwrap(), "SELECT 1");
        let error = without_functions("CREATE FUNCTION g USING COMPONENT 'a'; SELECT 1", &known).unwrap_err();
        assert!(error.to_string().contains("`a` has no function `g`; functions of plugins are: f"), "{error}");
    }

    #[test]
    fn other_statements_are_refused_with_what_would_be_right() {
        assert!(refused("CREATE TABLE t (a INT); SELECT 1").contains("expected FUNCTION, found `TABLE`"));
        assert!(refused("CREATE FUNCTION f AS 'x' USING JAR 'y'; SELECT 1").contains("expected USING, found `AS`"));
        assert!(refused("CREATE FUNCTION f USING COMPONENT; SELECT 1").contains("file in quotes, found `;`"));
        assert!(refused("CREATE FUNCTION f USING COMPONENT 'a' SELECT 1").contains("a semicolon, found `SELECT`"));
        assert!(refused("CREATE FUNCTION").contains("name, found the end"));
        let twice = "CREATE FUNCTION f USING COMPONENT 'a'; CREATE FUNCTION f USING COMPONENT 'b'; SELECT 1";
        assert!(refused(twice).contains("created twice"));
    }
}
