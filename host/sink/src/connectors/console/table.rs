//! Rows as a table of text, in the layout of Spark's `show`.
//!
//! Columns are at least three wide. Cells stand at the right when they are cut to a length, at the left when
//! they are not. Characters of East Asian scripts count double; line ends and their like are written as
//! escapes.

use super::cell;
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;

const LEAST_WIDTH: usize = 3;

/// The table of the first `most` rows; cells longer than `truncate` are cut, 0 cuts nothing.
pub(crate) fn show(schema: &Schema, rows: &[RecordBatch], most: usize, truncate: usize) -> Result<String, ArrowError> {
    let total: usize = rows.iter().map(RecordBatch::num_rows).sum();
    let mut lines: Vec<Vec<String>> =
        vec![schema.fields().iter().map(|field| fit(&escape(field.name()), truncate)).collect()];
    let places = rows.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    for (batch, row) in places.take(most) {
        let mut line = Vec::with_capacity(batch.num_columns());
        for column in batch.columns() {
            let mut text = String::new();
            cell::write(&mut text, column.as_ref(), row)?;
            line.push(fit(&escape(&text), truncate));
        }
        lines.push(line);
    }
    let widths: Vec<usize> = (0..schema.fields().len())
        .map(|column| lines.iter().map(|line| width(&line[column])).max().unwrap_or(0).max(LEAST_WIDTH))
        .collect();
    let rule = format!("+{}+\n", widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("+"));
    let mut table = rule.clone();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| pad(cell, *width, truncate > 0)).collect();
        table.push_str(&format!("|{}|\n", cells.join("|")));
        if number == 0 {
            table.push_str(&rule);
        }
    }
    table.push_str(&rule);
    if total > most {
        table.push_str(&format!("only showing top {most} {}\n", if most == 1 { "row" } else { "rows" }));
    }
    Ok(table)
}

fn pad(cell: &str, wanted: usize, at_right: bool) -> String {
    let blanks = " ".repeat(wanted - width(cell));
    if at_right { blanks + cell } else { cell.to_owned() + &blanks }
}

/// How many half-width places a text takes, characters counted in UTF-16 units.
fn width(text: &str) -> usize {
    text.chars().map(|character| character.len_utf16() + usize::from(is_wide(character))).sum()
}

fn is_wide(character: char) -> bool {
    matches!(character,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}')
}

/// Cuts a text to `most` UTF-16 units; where there is room the last three say so.
fn fit(text: &str, most: usize) -> String {
    if most == 0 || text.chars().map(char::len_utf16).sum::<usize>() <= most {
        return text.to_owned();
    }
    let (keep, tail) = if most < 4 { (most, "") } else { (most - 3, "...") };
    let mut taken = 0;
    let head: String = text
        .chars()
        .take_while(|character| {
            taken += character.len_utf16();
            taken <= keep
        })
        .collect();
    head + tail
}

/// Writes control characters that would break the table as escapes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{c}' => escaped.push_str("\\f"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{b}' => escaped.push_str("\\v"),
            '\u{7}' => escaped.push_str("\\a"),
            _ => escaped.push(character),
        }
    }
    escaped
}
