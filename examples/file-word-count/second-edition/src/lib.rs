//! The second edition of `plugins/text`, for swapping into a query that runs.
//!
//! `words` and `tokens` give the same words as in the first edition, so counts go on as if nothing had happened;
//! `tokens` gets them in one pass over the characters, and `letters` is new.

use millstream_sdk::prelude::*;

/// The parts of a line between single spaces.
#[table_function]
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ')
}

/// The runs of letters and digits of a line, in lower case.
#[table_function]
fn tokens(line: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut token = String::new();
    for character in line.chars() {
        if character.is_alphanumeric() {
            token.push(character);
        } else if !token.is_empty() {
            tokens.push(token.to_lowercase());
            token.clear();
        }
    }
    if !token.is_empty() {
        tokens.push(token.to_lowercase());
    }
    tokens
}

/// How many letters and digits a line has.
#[scalar_function]
fn letters(line: &str) -> i64 {
    line.chars().filter(|character| character.is_alphanumeric()).count() as i64
}

plugin!(words, tokens, letters);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_the_first_edition() {
        let first = |line: &str| {
            let parts = line.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty());
            parts.map(str::to_lowercase).collect::<Vec<_>>()
        };
        for line in ["", " -- ", "Hello, World! Ünïcode_2x", "end", "Aaron's rod"] {
            assert_eq!(tokens(line), first(line), "{line}");
        }
    }

    #[test]
    fn letters_are_counted_without_what_is_between_them() {
        assert_eq!(letters("Aaron's rod, 2x"), 11);
    }
}
