//! The kernel of casts from STRING: the readers of [`super::text_in`] over whole columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanBuilder, PrimitiveBuilder, StringArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, is_validate_decimal_precision,
};
use arrow::error::ArrowError;

use super::super::fault::{decimal_overflow, fault, malformed};
use super::super::type_name::shown_type;
use super::{Kernel, Rules, text_in};

/// Casts a column of texts to anything but text and binary.
pub(super) fn cast_text(texts: &StringArray, to: &DataType, rules: Rules) -> Kernel {
    let fraction_allowed = !rules.ansi;
    macro_rules! whole {
        ($kind:ty) => {
            read::<$kind>(texts, to, rules, |text| text_in::integer(text, fraction_allowed)?.try_into().ok())
        };
    }
    match to {
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::Float32 => read::<Float32Type>(texts, to, rules, text_in::float),
        DataType::Float64 => read::<Float64Type>(texts, to, rules, text_in::double),
        DataType::Date32 => read::<Date32Type>(texts, to, rules, text_in::date),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let mut builder = PrimitiveBuilder::<TimestampMicrosecondType>::with_capacity(texts.len());
            fill(texts, to, rules, |text| text_in::timestamp(text, rules.today), |value| builder.append_option(value))?;
            Ok(Arc::new(builder.finish().with_timezone_opt(zone.clone())))
        }
        DataType::Timestamp(_, zone) => {
            let micros = cast_text(texts, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()), rules)?;
            arrow::compute::cast(&micros, to)
        }
        DataType::Boolean => {
            let mut builder = BooleanBuilder::with_capacity(texts.len());
            fill(texts, to, rules, text_in::boolean, |value| builder.append_option(value))?;
            Ok(Arc::new(builder.finish()))
        }
        DataType::Decimal128(precision, scale) => decimals(texts, to, (*precision, *scale), rules),
        _ => {
            let options = arrow::compute::CastOptions { safe: !rules.mode.fails(), ..Default::default() };
            arrow::compute::cast_with_options(&(Arc::new(texts.clone()) as ArrayRef), to, &options).map_err(|_| {
                fault(format!(
                    "[CAST_INVALID_INPUT] a STRING cannot be cast to {} because it is malformed",
                    shown_type(to)
                ))
            })
        }
    }
}

fn fill<V>(
    texts: &StringArray,
    to: &DataType,
    rules: Rules,
    reader: impl Fn(&str) -> Option<V>,
    mut push: impl FnMut(Option<V>),
) -> Result<(), ArrowError> {
    for text in texts {
        let value = match text {
            None => None,
            Some(text) => {
                let value = reader(text);
                if value.is_none() && rules.mode.fails() {
                    return Err(malformed(text, &shown_type(to)));
                }
                value
            }
        };
        push(value);
    }
    Ok(())
}

fn read<T: ArrowPrimitiveType>(
    texts: &StringArray,
    to: &DataType,
    rules: Rules,
    reader: impl Fn(&str) -> Option<T::Native>,
) -> Kernel {
    let mut builder = PrimitiveBuilder::<T>::with_capacity(texts.len());
    fill(texts, to, rules, reader, |value| builder.append_option(value))?;
    Ok(Arc::new(builder.finish()))
}

fn decimals(texts: &StringArray, to: &DataType, (precision, scale): (u8, i8), rules: Rules) -> Kernel {
    let mut builder = PrimitiveBuilder::<Decimal128Type>::with_capacity(texts.len());
    for text in texts {
        let Some(text) = text else {
            builder.append_null();
            continue;
        };
        let value = match text_in::decimal(text, scale) {
            Ok(value) if is_validate_decimal_precision(value, precision) => Ok(value),
            Ok(_) | Err(text_in::NoDecimal::TooLarge) => Err(decimal_overflow(text, precision, scale)),
            Err(text_in::NoDecimal::Malformed) => Err(malformed(text, &shown_type(to))),
        };
        match value {
            Ok(value) => builder.append_value(value),
            Err(error) if rules.mode.fails() => return Err(error),
            Err(_) => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish().with_precision_and_scale(precision, scale)?))
}
