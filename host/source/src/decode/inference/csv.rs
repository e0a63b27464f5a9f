//! The columns of separated values: names from the header or `_c0`, `_c1`, …; types only when they are asked for.

use crate::decode::csv::{header_names, line_values, one_value};
use crate::decode::{CsvOptions, next_line};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

/// From the narrowest type to the widest.
fn ladder() -> [DataType; 7] {
    [
        DataType::Int32,
        DataType::Int64,
        DataType::Float64,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Boolean,
        DataType::Utf8,
    ]
}

/// Looks at lines, one file after the other.
#[derive(Debug)]
pub(crate) struct CsvInference {
    options: CsvOptions,
    has_types: bool,
    names: Option<Vec<String>>,
    /// Per column the step of the ladder; none while only nulls were seen.
    steps: Vec<Option<usize>>,
}

impl CsvInference {
    /// Without types all columns are strings.
    pub(crate) fn new(options: CsvOptions, has_types: bool) -> Self {
        Self { options, has_types, names: None, steps: Vec::new() }
    }

    /// Looks at the lines of a file, from its beginning.
    pub(crate) fn see(&mut self, mut text: &[u8]) {
        let ladder = ladder();
        let mut is_header = self.options.header;
        while let Some((line, taken)) = next_line(text, self.options.line_separator.as_deref()) {
            text = &text[taken..];
            if line.trim_ascii().is_empty() {
                continue;
            }
            if std::mem::take(&mut is_header) {
                self.names.get_or_insert_with(|| header_names(line, &self.options));
                continue;
            }
            let values = line_values(line, &self.options);
            let names = self.names.get_or_insert_with(|| (0..values.len()).map(|at| format!("_c{at}")).collect());
            self.steps.resize(names.len(), None);
            for (step, value) in self.steps.iter_mut().zip(&values) {
                let Some(value) = value else { continue };
                let from = step.unwrap_or(0);
                *step = (from..ladder.len()).find(|at| fits(&ladder[*at], *step, value));
            }
        }
    }

    /// The columns; none when there was not even a header.
    pub(crate) fn schema(mut self) -> Option<Schema> {
        let ladder = ladder();
        let names = self.names?;
        self.steps.resize(names.len(), None);
        let mut fields: Vec<Field> = Vec::new();
        for (at, (name, step)) in names.into_iter().zip(self.steps).enumerate() {
            let is_taken = name.is_empty() || fields.iter().any(|field| *field.name() == name);
            let name = if name.is_empty() {
                format!("_c{at}")
            } else if is_taken {
                format!("{name}{at}")
            } else {
                name
            };
            let data_type = step.filter(|_| self.has_types).and_then(|step| ladder.get(step).cloned());
            fields.push(Field::new(name, data_type.unwrap_or(DataType::Utf8), true));
        }
        Some(Schema::new(fields))
    }
}

/// Whether a value is of a type, where earlier values were of the type at `step`.
fn fits(data_type: &DataType, step: Option<usize>, value: &str) -> bool {
    // A number is no date and no flag: what was a number and is none any more is a string.
    let was_number = step.is_some_and(|step| step <= 2);
    match data_type {
        DataType::Date32 => !was_number && value.len() == 10 && one_value(data_type, value).is_some(),
        DataType::Timestamp(..) => !was_number && value.len() >= 10 && one_value(data_type, value).is_some(),
        DataType::Boolean => step.is_none_or(|step| step == 5) && one_value(data_type, value).is_some(),
        other => one_value(other, value).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::Options;

    fn schema(text: &str, options: Options, has_types: bool) -> String {
        let mut inference = CsvInference::new(CsvOptions::from_options("source `t`", &options).unwrap(), has_types);
        inference.see(text.as_bytes());
        let schema = inference.schema().unwrap();
        let fields = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        fields.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn names_come_from_the_header_and_types_widen() {
        let header = Options::new().with("header", "true");
        let text = "i,l,d,day,t,f,s\n1,1,1,2024-05-01,2024-05-01 10:00:00,true,x\n,5000000000,2.5,,,false,1\n";
        assert_eq!(
            schema(text, header.clone(), true),
            "i Int32, l Int64, d Float64, day Date32, t Timestamp(µs, \"UTC\"), f Boolean, s Utf8"
        );
        assert_eq!(schema("a,a,\n1,2,3", header, false), "a Utf8, a1 Utf8, _c2 Utf8");
        assert_eq!(schema("1,x\n2024-05-01,y", Options::new(), true), "_c0 Utf8, _c1 Utf8");
    }
}
