//! Covariance, correlation and linear regression: statistics of pairs of columns.
//!
//! Pairs with a NULL on either side are left out. As in [`super::moments`], rows are gathered apart from merged states.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double};
use super::group_states::{GroupStates, each_row};

/// A statistic of two columns. The regressions are called `f(y, x)`: `y` depends on `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Comoment {
    /// `covar_samp`.
    CovarSamp,
    /// `covar_pop`.
    CovarPop,
    /// `corr`.
    Corr,
    /// `regr_slope`.
    Slope,
    /// `regr_intercept`.
    Intercept,
    /// `regr_r2`.
    R2,
    /// `regr_sxx`.
    Sxx,
    /// `regr_syy`.
    Syy,
    /// `regr_sxy`.
    Sxy,
}

impl Comoment {
    fn of(self, c: &Comoments) -> Option<f64> {
        if c.count == 0.0 {
            return None;
        }
        // The first argument is `y` of the regressions.
        let (syy, sxx) = (c.first_m2, c.second_m2);
        let slope = || (sxx != 0.0).then(|| c.co / sxx);
        match self {
            Self::CovarSamp => (c.count > 1.0).then(|| c.co / (c.count - 1.0)),
            Self::CovarPop => Some(c.co / c.count),
            Self::Corr => {
                let scale = (c.first_m2 * c.second_m2).sqrt();
                (c.count > 1.0 && scale != 0.0).then(|| c.co / scale)
            }
            Self::Slope => slope(),
            Self::Intercept => slope().map(|slope| c.first_mean - slope * c.second_mean),
            Self::R2 if sxx == 0.0 => None,
            Self::R2 if syy == 0.0 => Some(1.0),
            Self::R2 => Some((c.co / (sxx * syy).sqrt()).powi(2)),
            Self::Sxx => Some(sxx),
            Self::Syy => Some(syy),
            Self::Sxy => Some(c.co),
        }
    }
}

impl Kind for Comoment {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 2, 2)?;
        args.iter().enumerate().map(|(index, found)| as_double(name, index, found)).collect()
    }

    fn returns(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state(&self, _args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        let names = ["count", "first_mean", "second_mean", "co", "first_m2", "second_m2"];
        Ok(names.into_iter().map(|name| (name, DataType::Float64)).collect())
    }

    fn columnar(&self, _args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupStates>>> {
        Ok(Some(Box::new(ComomentGroups { statistic: *self, merged: Vec::new(), rows: Vec::new() })))
    }
}

/// Count, means, the sum of the products of the distances from the means, and of their squares.
#[derive(Debug, Clone, Copy, Default)]
struct Comoments {
    count: f64,
    first_mean: f64,
    second_mean: f64,
    co: f64,
    first_m2: f64,
    second_m2: f64,
}

impl Comoments {
    fn add(&mut self, first: f64, second: f64) {
        self.count += 1.0;
        let (d1, d2) = (first - self.first_mean, second - self.second_mean);
        self.first_mean += d1 / self.count;
        self.second_mean += d2 / self.count;
        self.co += d1 * (second - self.second_mean);
        self.first_m2 += d1 * (first - self.first_mean);
        self.second_m2 += d2 * (second - self.second_mean);
    }

    fn merge(&self, other: &Self) -> Self {
        if self.count == 0.0 {
            return *other;
        }
        if other.count == 0.0 {
            return *self;
        }
        let (a, b) = (self.count, other.count);
        let count = a + b;
        let (d1, d2) = (other.first_mean - self.first_mean, other.second_mean - self.second_mean);
        let (step1, step2) = (d1 / count, d2 / count);
        Self {
            count,
            first_mean: self.first_mean + step1 * b,
            second_mean: self.second_mean + step2 * b,
            co: self.co + other.co + d1 * step2 * a * b,
            first_m2: self.first_m2 + other.first_m2 + d1 * step1 * a * b,
            second_m2: self.second_m2 + other.second_m2 + d2 * step2 * a * b,
        }
    }

    const PARTS: [fn(&Self) -> f64; 6] =
        [|c| c.count, |c| c.first_mean, |c| c.second_mean, |c| c.co, |c| c.first_m2, |c| c.second_m2];
}

struct ComomentGroups {
    statistic: Comoment,
    merged: Vec<Comoments>,
    rows: Vec<Comoments>,
}

impl ComomentGroups {
    fn take(&mut self, emit: EmitTo) -> Vec<Comoments> {
        let merged = emit.take_needed(&mut self.merged);
        let rows = emit.take_needed(&mut self.rows);
        merged.iter().zip(&rows).map(|(merged, rows)| merged.merge(rows)).collect()
    }
}

impl GroupStates for ComomentGroups {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self { statistic: self.statistic, merged: Vec::new(), rows: Vec::new() })
    }

    fn grow(&mut self, groups: usize) {
        if self.rows.len() < groups {
            self.rows.resize(groups, Comoments::default());
            self.merged.resize(groups, Comoments::default());
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let first = values[0].as_primitive::<Float64Type>();
        let second = values[1].as_primitive::<Float64Type>();
        let nulls = NullBuffer::union(first.nulls(), second.nulls());
        each_row(nulls.as_ref(), filter, groups, |row, group| {
            self.rows[group].add(first.value(row), second.value(row));
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let columns: Vec<_> = states.iter().map(|state| state.as_primitive::<Float64Type>()).collect();
        each_row(columns[0].nulls(), None, groups, |row, group| {
            let stored = Comoments {
                count: columns[0].value(row),
                first_mean: columns[1].value(row),
                second_mean: columns[2].value(row),
                co: columns[3].value(row),
                first_m2: columns[4].value(row),
                second_m2: columns[5].value(row),
            };
            self.merged[group] = self.merged[group].merge(&stored);
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let all = self.take(emit);
        let column =
            |part: &fn(&Comoments) -> f64| Arc::new(all.iter().map(part).collect::<Float64Array>()) as ArrayRef;
        Ok(Comoments::PARTS.iter().map(column).collect())
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let statistic = self.statistic;
        Ok(Arc::new(self.take(emit).iter().map(|c| statistic.of(c)).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        (self.rows.capacity() + self.merged.capacity()) * size_of::<Comoments>()
    }
}
