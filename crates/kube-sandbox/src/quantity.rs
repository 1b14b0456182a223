//! Quantities: `500m`, `1.5Gi`, `2e3`. Parsed exactly, compared by value, written in the server's canonical form.

use std::cmp::Ordering;

/// The error about text that is not a quantity, as clients receive it.
pub const NOT_A_QUANTITY: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An amount, kept in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

const NANO: i128 = 1_000_000_000;
/// No quantity is larger than this.
const MOST: i128 = i64::MAX as i128 * NANO;

impl Quantity {
    /// Reads a quantity; what is finer than a billionth is rounded up.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text
            .char_indices()
            .position(|(i, c)| !(c.is_ascii_digit() || c == '.' || (i == 0 && "+-".contains(c))));
        let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
        let (factor, exponent, form) = suffix_of(suffix)?;
        let (negative, digits) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number.strip_prefix('+').unwrap_or(number)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let amount = scaled(whole, fraction, exponent + 9, factor)?;
        let amount = amount.min(MOST);
        let nanos = if negative { -amount } else { amount };
        Some(Self { nanos, form })
    }

    /// The form in which the server gives it back.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        if self.form == Form::Binary {
            let bytes = self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0);
            if bytes.abs() >= 1024 {
                let (mut left, mut step) = (bytes, 0);
                while left % 1024 == 0 && step < 6 {
                    left /= 1024;
                    step += 1;
                }
                return format!("{left}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step]);
            }
            return Self {
                nanos: bytes * NANO,
                form: Form::Decimal,
            }
            .canonical();
        }
        let (mut left, mut step) = (self.nanos, 0);
        while left % 1000 == 0 && step < 9 {
            left /= 1000;
            step += 1;
        }
        match self.form {
            Form::Exponent if step == 3 => left.to_string(),
            Form::Exponent => format!("{left}e{}", (i64::try_from(step).unwrap_or_default() - 3) * 3),
            _ => format!("{left}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][step]),
        }
    }

    /// In thousandths; a fraction of a thousandth counts as a whole one, so that a request is never understated.
    pub fn thousandths(self) -> i128 {
        const OF_THEM: i128 = NANO / 1000;
        self.nanos.div_euclid(OF_THEM) + i128::from(self.nanos.rem_euclid(OF_THEM) != 0)
    }

    /// Whether it is above or below nothing.
    pub fn signum(self) -> i32 {
        match self.nanos.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// A quantity in thousandths (`250m` is 250, `1Gi` is 1073741824000); `None` when it cannot be read.
#[cfg(feature = "controllers")]
pub(crate) fn thousandths(quantity: &k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> Option<i128> {
    Quantity::parse(&quantity.0).map(Quantity::thousandths)
}

/// What a suffix multiplies with, the power of ten it stands for, and the form it belongs to.
fn suffix_of(suffix: &str) -> Option<(i128, i32, Form)> {
    let decimal = |exponent| Some((1, exponent, Form::Decimal));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => Some((1 << 10, 0, Form::Binary)),
        "Mi" => Some((1 << 20, 0, Form::Binary)),
        "Gi" => Some((1 << 30, 0, Form::Binary)),
        "Ti" => Some((1 << 40, 0, Form::Binary)),
        "Pi" => Some((1 << 50, 0, Form::Binary)),
        "Ei" => Some((1 << 60, 0, Form::Binary)),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            let exponent: i32 = digits.parse().ok()?;
            (exponent.abs() <= 30).then_some((1, exponent, Form::Exponent))
        }
    }
}

/// `whole.fraction * factor * 10^exponent`, rounded up; values beyond all bounds are the largest there is.
fn scaled(whole: &str, fraction: &str, exponent: i32, factor: i128) -> Option<i128> {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if digits.len() > 36 {
        return Some(MOST);
    }
    let mantissa: i128 = digits.parse().ok()?;
    let shift = exponent - i32::try_from(fraction.len()).ok()?;
    let Some(product) = mantissa.checked_mul(factor) else {
        return Some(MOST);
    };
    let power = 10_i128.checked_pow(shift.unsigned_abs());
    Some(match (power, shift < 0) {
        (None, true) => 1,
        (None, false) => MOST,
        (Some(power), true) => product.div_euclid(power) + i128::from(product.rem_euclid(power) != 0),
        (Some(power), false) => product.checked_mul(power).unwrap_or(MOST),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Quantity;

    #[test]
    fn quantities_in_thousandths_are_rounded_up() {
        for (text, expected) in [
            ("1", 1000),
            ("250m", 250),
            ("0.5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("100M", 100_000_000_000),
            ("1e3", 1_000_000),
            ("5E-1", 500),
            ("1n", 1),
            ("1u", 1),
            ("-2", -2000),
            ("1E", 1_000_000_000_000_000_000_000),
        ] {
            assert_eq!(
                Quantity::parse(text).map(Quantity::thousandths),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1000", "1k"),
            ("100", "100"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1023", "1023"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("-5m", "-5m"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1500m", "1500m"),
            ("+2", "2"),
            (".5", "500m"),
            ("0.0000000001", "1n"),
            ("1E", "1E"),
        ] {
            assert_eq!(
                Quantity::parse(text).map(Quantity::canonical).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in ["", "x", "1x", "1.2.3", "1 Gi", "Gi", "1ki", "--1", "1e", "."] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_of_decimals_is_its_own(text in "[+-]?[0-9]{0,12}(\\.[0-9]{0,12})?(m|k|G|e3|n|)") {
            if let Some(quantity) = Quantity::parse(&text) {
                let once = quantity.canonical();
                prop_assert_eq!(Quantity::parse(&once).map(Quantity::canonical), Some(once));
            }
        }

        #[test]
        fn parsing_never_panics(text in ".{0,40}") {
            let _ = Quantity::parse(&text).map(Quantity::canonical);
        }
    }
}
