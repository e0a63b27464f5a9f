//! Variance, standard deviation, skewness and kurtosis: one pass over the values, by central moments.
//!
//! The update and merge rules are those of Welford, Chan, Pébay. Rows are gathered apart from merged states and
//! joined with them when the state is read, so the result does not depend on which came first.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double};
use super::group_states::{GroupStates, each_row};

/// A statistic of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    /// `stddev`, `stddev_samp`, `std`.
    StddevSamp,
    /// `stddev_pop`.
    StddevPop,
    /// `variance`, `var_samp`.
    VarSamp,
    /// `var_pop`.
    VarPop,
    /// `skewness`.
    Skewness,
    /// `kurtosis`, the excess over a normal distribution.
    Kurtosis,
}

impl Moment {
    /// The highest central moment that is needed.
    fn order(self) -> usize {
        match self {
            Self::StddevSamp | Self::StddevPop | Self::VarSamp | Self::VarPop => 2,
            Self::Skewness => 3,
            Self::Kurtosis => 4,
        }
    }

    fn of(self, moments: &Moments) -> Option<f64> {
        let Moments { count, m2, m3, m4, .. } = *moments;
        if count == 0.0 {
            return None;
        }
        let sample = || (count > 1.0).then(|| m2 / (count - 1.0));
        match self {
            Self::StddevSamp => sample().map(f64::sqrt),
            Self::VarSamp => sample(),
            Self::StddevPop => Some((m2 / count).sqrt()),
            Self::VarPop => Some(m2 / count),
            Self::Skewness => (m2 != 0.0).then(|| count.sqrt() * m3 / (m2 * m2 * m2).sqrt()),
            Self::Kurtosis => (m2 != 0.0).then(|| count * m4 / (m2 * m2) - 3.0),
        }
    }
}

impl Kind for Moment {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 1)?;
        Ok(vec![as_double(name, 0, &args[0])?])
    }

    fn returns(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state(&self, _args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        let names = ["count", "mean", "m2", "m3", "m4"];
        Ok(names.into_iter().take(self.order() + 1).map(|name| (name, DataType::Float64)).collect())
    }

    fn columnar(&self, _args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupStates>>> {
        Ok(Some(Box::new(MomentGroups { moment: *self, merged: Vec::new(), rows: Vec::new() })))
    }
}

/// Count, mean and the sums of the powers of the distances from the mean.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    m2: f64,
    m3: f64,
    m4: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        let count = self.count + 1.0;
        let delta = value - self.mean;
        let step = delta / count;
        let m2 = self.m2 + delta * (delta - step);
        let (delta2, step2) = (delta * delta, step * step);
        let m3 = self.m3 - 3.0 * step * m2 + delta * (delta2 - step2);
        let m4 = self.m4 - 4.0 * step * m3 - 6.0 * step2 * m2 + delta * (delta * delta2 - step * step2);
        *self = Self { count, mean: self.mean + step, m2, m3, m4 };
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
        let delta = other.mean - self.mean;
        let step = delta / count;
        let mean = self.mean + step * b;
        let m2 = self.m2 + other.m2 + delta * step * a * b;
        let m3 = self.m3 + other.m3 + step * step * delta * a * b * (a - b) + 3.0 * step * (a * other.m2 - b * self.m2);
        let m4 = self.m4
            + other.m4
            + step * step * step * delta * a * b * (a * a - a * b + b * b)
            + 6.0 * step * step * (a * a * other.m2 + b * b * self.m2)
            + 4.0 * step * (a * other.m3 - b * self.m3);
        Self { count, mean, m2, m3, m4 }
    }
}

struct MomentGroups {
    moment: Moment,
    merged: Vec<Moments>,
    rows: Vec<Moments>,
}

impl MomentGroups {
    fn take(&mut self, emit: EmitTo) -> Vec<Moments> {
        let merged = emit.take_needed(&mut self.merged);
        let rows = emit.take_needed(&mut self.rows);
        merged.iter().zip(&rows).map(|(merged, rows)| merged.merge(rows)).collect()
    }
}

impl GroupStates for MomentGroups {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self { moment: self.moment, merged: Vec::new(), rows: Vec::new() })
    }

    fn grow(&mut self, groups: usize) {
        if self.rows.len() < groups {
            self.rows.resize(groups, Moments::default());
            self.merged.resize(groups, Moments::default());
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        each_row(values.nulls(), filter, groups, |row, group| {
            self.rows[group].add(values.value(row));
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let columns: Vec<_> = states.iter().map(|state| state.as_primitive::<Float64Type>()).collect();
        let at = |column: usize, row: usize| columns.get(column).map_or(0.0, |column| column.value(row));
        each_row(columns[0].nulls(), None, groups, |row, group| {
            let stored =
                Moments { count: at(0, row), mean: at(1, row), m2: at(2, row), m3: at(3, row), m4: at(4, row) };
            self.merged[group] = self.merged[group].merge(&stored);
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let moments = self.take(emit);
        let parts: [fn(&Moments) -> f64; 5] = [|m| m.count, |m| m.mean, |m| m.m2, |m| m.m3, |m| m.m4];
        let columns = parts.iter().take(self.moment.order() + 1);
        Ok(columns.map(|part| Arc::new(moments.iter().map(part).collect::<Float64Array>()) as ArrayRef).collect())
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let moment = self.moment;
        Ok(Arc::new(self.take(emit).iter().map(|moments| moment.of(moments)).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        (self.rows.capacity() + self.merged.capacity()) * size_of::<Moments>()
    }
}
