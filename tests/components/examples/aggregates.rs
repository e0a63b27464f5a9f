//! Aggregate functions that do what they should.

use millstream_sdk::prelude::*;

/// A sum that refuses negative numbers.
#[derive(Row, Default)]
struct Total {
    count: i64,
    sum: i64,
}

#[aggregate_function(state_id = "count and sum")]
impl Total {
    fn accumulate(&mut self, x: i64) -> Result<(), String> {
        if x < 0 {
            return Err(format!("{x} is negative"));
        }
        self.count += 1;
        self.sum += x;
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn retract(&mut self, x: i64) {
        self.count -= 1;
        self.sum -= x;
    }

    fn evaluate(&self) -> Option<i64> {
        (self.count > 0).then_some(self.sum)
    }
}

/// The longest text, the first of several.
#[derive(Row, Default)]
struct Longest {
    text: Option<String>,
}

#[aggregate_function]
impl Longest {
    fn accumulate(&mut self, text: &str) {
        if self.text.as_ref().is_none_or(|longest| longest.chars().count() < text.chars().count()) {
            self.text = Some(text.to_owned());
        }
    }

    fn merge(&mut self, other: Self) {
        if let Some(text) = other.text {
            self.accumulate(&text);
        }
    }

    fn evaluate(&self) -> Option<String> {
        self.text.clone()
    }
}

/// Everything that was seen, in the order of arrival: nested columns, and nulls that arrive.
#[derive(Row, Default)]
struct Trail {
    steps: Vec<Step>,
}

/// One row.
#[derive(Row)]
struct Step {
    place: String,
    weight: Option<f64>,
}

#[aggregate_function]
impl Trail {
    fn accumulate(&mut self, place: &str, weight: Option<f64>) {
        self.steps.push(Step { place: place.to_owned(), weight });
    }

    fn merge(&mut self, other: Self) {
        self.steps.extend(other.steps);
    }

    fn evaluate(&self) -> String {
        let step = |step: &Step| match step.weight {
            Some(weight) => format!("{}={weight}", step.place),
            None => step.place.clone(),
        };
        self.steps.iter().map(step).collect::<Vec<_>>().join(" ")
    }
}

/// A scalar function beside them.
#[scalar_function]
fn twice(x: i64) -> i64 {
    2 * x
}

plugin!(twice; aggregates: Total, Longest, Trail);
