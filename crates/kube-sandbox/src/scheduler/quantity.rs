//! Kubernetes quantities as whole numbers of thousandths.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A quantity in thousandths (`250m` is 250, `1Gi` is 1073741824000); `None` when it cannot be read.
pub fn milli(quantity: &Quantity) -> Option<i128> {
    parse(&quantity.0)
}

fn parse(text: &str) -> Option<i128> {
    let split = text
        .char_indices()
        .find(|(at, letter)| !(letter.is_ascii_digit() || *letter == '.' || (*at == 0 && matches!(letter, '+' | '-'))))
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(split);
    let (numerator, denominator): (i128, i128) = match suffix {
        "" => (1000, 1),
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        "Pi" => (1000 << 50, 1),
        "Ei" => (1000 << 60, 1),
        exponent => power(exponent)?,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let product = digits.checked_mul(numerator)?;
    let divisor = scale.checked_mul(denominator)?;
    // A fraction of a thousandth counts as a whole one: a request is never understated.
    Some(product.div_euclid(divisor) + i128::from(product.rem_euclid(divisor) != 0))
}

/// `e3`, `E-2`: a decimal exponent.
fn power(suffix: &str) -> Option<(i128, i128)> {
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 {
        (1000, factor)
    } else {
        (factor.checked_mul(1000)?, 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_of_a_quantity_is_parsed() {
        let cases = [
            ("1", Some(1000)),
            ("250m", Some(250)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("100M", Some(100_000_000_000)),
            ("1k", Some(1_000_000)),
            ("1e3", Some(1_000_000)),
            ("5E-1", Some(500)),
            ("1n", Some(1)),
            ("-2", Some(-2000)),
            ("+2", Some(2000)),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("x", None),
            ("", None),
            ("1Q", None),
            ("1.2.3", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
