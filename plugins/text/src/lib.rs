//! Text as a plugin: lines to words.
//!
//! `words` splits as Spark's word-count example does; `tokens` is for people who want words and not punctuation.

use millstream_sdk::prelude::*;

/// The parts of a line between single spaces. As with Spark's `split(line, ' ')`, two spaces in a row have an empty word
/// between them, and a space at the end has one after it.
#[table_function]
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ')
}

/// The runs of letters and digits of a line, in lower case.
#[table_function]
fn tokens(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()).map(str::to_lowercase)
}

plugin!(words, tokens);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_is_between_single_spaces() {
        assert_eq!(words("apache spark  rocks").collect::<Vec<_>>(), ["apache", "spark", "", "rocks"]);
        assert_eq!(words("end ").collect::<Vec<_>>(), ["end", ""]);
        assert_eq!(words("").collect::<Vec<_>>(), [""]);
        assert_eq!(words("one\ttab").collect::<Vec<_>>(), ["one\ttab"]);
    }

    #[test]
    fn tokens_are_lower_case_and_without_punctuation() {
        assert_eq!(tokens("Hello, World! Ünïcode_2x").collect::<Vec<_>>(), ["hello", "world", "ünïcode", "2x"]);
        assert_eq!(tokens(" -- ").count(), 0);
    }
}
