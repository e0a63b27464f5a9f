//! Numbers as JSON texts show them: at least one digit behind the point, an exponent for the very large and small.

/// A finite DOUBLE.
pub(super) fn double(value: f64) -> String {
    shown(value == 0.0 && value.is_sign_negative(), value.abs(), format!("{value:e}"))
}

/// A finite FLOAT.
pub(super) fn float(value: f32) -> String {
    shown(value == 0.0 && value.is_sign_negative(), f64::from(value.abs()), format!("{value:e}"))
}

fn shown(negative_zero: bool, magnitude: f64, scientific: String) -> String {
    if magnitude == 0.0 {
        return if negative_zero { "-0.0".into() } else { "0.0".into() };
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific.as_str(), "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if !(1e-3..1e7).contains(&magnitude) {
        let fraction = if digits.len() > 1 { &digits[1..] } else { "0" };
        return format!("{sign}{}.{fraction}E{exponent}", &digits[..1]);
    }
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
    }
}
