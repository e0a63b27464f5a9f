//! Spark's `flatMapGroupsWithState` as a processor.
//!
//! A function is called once per key and batch that has rows for it, with the key's state. It may set a timeout, which the
//! next call of the key ends, whatever that call is for; a key that has rows in a batch does not time out in it.

use super::{Call, Columns, Handle, KeyError, KeyResult, OutputMode, Processor, TimeMode, ValueState};
use std::marker::PhantomData;
use std::time::Duration;

/// Which time timeouts go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// There are none.
    None,
    /// The time of the batch.
    ProcessingTime,
    /// The watermark.
    EventTime,
}

/// A function over groups (the function of Spark's `flatMapGroupsWithState`).
///
/// It becomes a plugin as `plugin!(processors: FlatMapGroups<MyFunction>);`.
pub trait GroupFunction: 'static {
    /// The name in SQL.
    const NAME: &'static str;
    /// The name of the key's column.
    const KEY: &'static str = "key";
    /// Which time its timeouts go by.
    const TIMEOUT: Timeout = Timeout::None;
    /// The output mode that a query with it must have.
    const OUTPUT_MODE: OutputMode = OutputMode::Append;
    /// The name for what the state means.
    const STATE_ID: &'static str = "1";

    /// The key.
    type Key: Columns;
    /// A row of the input.
    type Input: Columns;
    /// A row of the output.
    type Output: Columns;
    /// What is kept per key; initial rows are such states.
    type State: Columns;

    /// Takes the rows of a key, or its timeout, which comes without rows.
    ///
    /// # Errors
    /// When the key cannot be processed.
    fn call(
        key: &Self::Key,
        rows: Vec<Self::Input>,
        state: &mut GroupState<'_, Self::State>,
    ) -> Result<Vec<Self::Output>, KeyError>;
}

/// The state of one key (Spark's `GroupState`).
#[derive(Debug)]
pub struct GroupState<'a, S: Columns> {
    value: &'a ValueState<S>,
    timeout: Timeout,
    has_timed_out: bool,
    processing_time_ms: i64,
    watermark_ms: i64,
    /// When the key times out; strictly before the time that ends it.
    at_ms: Option<i64>,
}

impl<S: Columns> GroupState<'_, S> {
    /// Whether there is a state.
    pub fn exists(&self) -> bool {
        self.value.exists()
    }

    /// The state, if there is one.
    pub fn get(&self) -> Option<S> {
        self.value.get()
    }

    /// Sets the state.
    pub fn update(&mut self, state: S) {
        self.value.update(state);
    }

    /// Removes the state.
    pub fn remove(&mut self) {
        self.value.clear();
    }

    /// Whether the function is called because the key has timed out.
    pub fn has_timed_out(&self) -> bool {
        self.has_timed_out
    }

    /// Lets the key time out when it gets no rows for so long, by the time of the batch.
    ///
    /// # Errors
    /// When timeouts do not go by processing time, or the time is zero.
    pub fn set_timeout_duration(&mut self, duration: Duration) -> KeyResult {
        if self.timeout != Timeout::ProcessingTime {
            return Err(KeyError::new("a duration can be set only where timeouts go by processing time"));
        }
        let ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        if ms == 0 {
            return Err(KeyError::new("the duration of a timeout must be positive"));
        }
        self.at_ms = Some(self.processing_time_ms.saturating_add(ms));
        Ok(())
    }

    /// Lets the key time out when the watermark has passed that time, in milliseconds since 1970.
    ///
    /// # Errors
    /// When timeouts do not go by event time, or the watermark has reached it already.
    pub fn set_timeout_timestamp(&mut self, at_ms: i64) -> KeyResult {
        if self.timeout != Timeout::EventTime {
            return Err(KeyError::new("a time can be set only where timeouts go by event time"));
        }
        if at_ms <= self.watermark_ms {
            let watermark = self.watermark_ms;
            return Err(KeyError(format!("the timeout {at_ms} is not after the watermark, which is at {watermark}")));
        }
        self.at_ms = Some(at_ms);
        Ok(())
    }

    /// The time of the batch, in milliseconds since 1970.
    pub fn processing_time_ms(&self) -> i64 {
        self.processing_time_ms
    }

    /// The watermark, in milliseconds since 1970; 0 before there is one.
    pub fn watermark_ms(&self) -> i64 {
        self.watermark_ms
    }
}

/// A [`GroupFunction`] as a processor.
#[derive(Debug)]
pub struct FlatMapGroups<F: GroupFunction> {
    state: ValueState<F::State>,
    function: PhantomData<F>,
}

impl<F: GroupFunction> FlatMapGroups<F> {
    fn call(&self, key: &F::Key, rows: Vec<F::Input>, has_timed_out: bool, call: &mut Call<F::Output>) -> KeyResult {
        call.timers().into_iter().for_each(|due| call.delete_timer(due));
        let mut state = GroupState {
            value: &self.state,
            timeout: F::TIMEOUT,
            has_timed_out,
            processing_time_ms: call.processing_time_ms(),
            watermark_ms: call.watermark_ms(),
            at_ms: None,
        };
        let rows = F::call(key, rows, &mut state)?;
        // A timer is due at its time, a timeout after it.
        if let Some(at_ms) = state.at_ms {
            call.register_timer(at_ms.saturating_add(1));
        }
        rows.into_iter().for_each(|row| call.emit(row));
        Ok(())
    }
}

impl<F: GroupFunction> Processor for FlatMapGroups<F> {
    const NAME: &'static str = F::NAME;
    const KEY: &'static str = F::KEY;
    const TIME_MODE: TimeMode = match F::TIMEOUT {
        Timeout::None => TimeMode::None,
        Timeout::ProcessingTime => TimeMode::ProcessingTime,
        Timeout::EventTime => TimeMode::EventTime,
    };
    const OUTPUT_MODES: &'static [OutputMode] = match F::OUTPUT_MODE {
        OutputMode::Append => &[OutputMode::Append],
        OutputMode::Update => &[OutputMode::Update],
    };

    type Key = F::Key;
    type Input = F::Input;
    type Output = F::Output;
    type Initial = F::State;

    fn init(state: &mut Handle) -> Self {
        let options = super::VariableOptions::default().state_id(F::STATE_ID);
        Self { state: state.value_with("state", options), function: PhantomData }
    }

    fn handle_input_rows(&mut self, key: &F::Key, rows: Vec<F::Input>, call: &mut Call<F::Output>) -> KeyResult {
        Self::call(self, key, rows, false, call)
    }

    fn handle_expired_timer(&mut self, key: &F::Key, _due_ms: i64, call: &mut Call<F::Output>) -> KeyResult {
        Self::call(self, key, Vec::new(), true, call)
    }

    fn handle_initial_state(&mut self, key: &F::Key, initial: F::State, _call: &mut Call<F::Output>) -> KeyResult {
        let _ = key;
        if self.state.exists() {
            return Err(KeyError::new("the key has two initial states"));
        }
        self.state.update(initial);
        Ok(())
    }
}
