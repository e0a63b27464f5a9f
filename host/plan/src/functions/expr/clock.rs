//! `current_timestamp` and its kin: the time of the running batch, the same for all its rows.
//!
//! Volatile for the optimiser, so that no plan keeps the time of the batch it was made in.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use millstream_common::{BatchTime, SqlSettings};

use super::common_type::timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    Timestamp,
    LocalTimestamp,
    Date,
}

#[derive(Debug)]
struct Now {
    reading: Reading,
    batch_time: BatchTime,
    aliases: Vec<String>,
    signature: Signature,
}

impl PartialEq for Now {
    fn eq(&self, other: &Self) -> bool {
        self.reading == other.reading
    }
}

impl Eq for Now {}

impl Hash for Now {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reading.hash(state);
    }
}

/// The clock's functions.
pub(super) fn functions(settings: &SqlSettings) -> Vec<Arc<ScalarUDF>> {
    let function = |reading, aliases: &[&str]| {
        Arc::new(ScalarUDF::new_from_impl(Now {
            reading,
            batch_time: settings.batch_time.clone(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            signature: Signature::nullary(Volatility::Volatile),
        }))
    };
    vec![
        function(Reading::Timestamp, &["now"]),
        function(Reading::LocalTimestamp, &[]),
        function(Reading::Date, &["curdate"]),
    ]
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        match self.reading {
            Reading::Timestamp => "current_timestamp",
            Reading::LocalTimestamp => "localtimestamp",
            Reading::Date => "current_date",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(match self.reading {
            Reading::Timestamp => timestamp(),
            Reading::LocalTimestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Reading::Date => DataType::Date32,
        })
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let millis = self.batch_time.get_ms();
        let micros = millis.saturating_mul(1_000);
        Ok(ColumnarValue::Scalar(match self.reading {
            Reading::Timestamp => ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())),
            Reading::LocalTimestamp => ScalarValue::TimestampMicrosecond(Some(micros), None),
            Reading::Date => ScalarValue::Date32(i32::try_from(millis.div_euclid(86_400_000)).ok()),
        }))
    }
}
