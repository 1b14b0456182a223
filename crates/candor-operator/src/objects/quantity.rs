//! Parses Kubernetes quantities.

/// Parses `1Gi`, `512M`, `1e9` or `1500m` and rounds down to a whole number. Returns None if the text is not a
/// quantity.
pub(crate) fn whole(text: &str) -> Option<u128> {
    multiplied(text, 1)
}

/// Parses a quantity in thousandths, the finest unit of a resource request.
pub(crate) fn thousandths(text: &str) -> Option<u128> {
    multiplied(text, 1000)
}

fn multiplied(text: &str, by: u128) -> Option<u128> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '+'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (integer, fraction) = number.trim_start_matches('+').split_once('.').unwrap_or((number, ""));
    let integer = integer.trim_start_matches('+');
    if integer.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits: u128 = format!("0{integer}{fraction}").parse().ok()?;
    let (times, over) = scale(unit)?;
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(digits.checked_mul(times)?.checked_mul(by)? / parts.checked_mul(over)?)
}

/// The multiplier and the divisor of a unit.
fn scale(unit: &str) -> Option<(u128, u128)> {
    let times = |exponent| Some((10_u128.pow(exponent), 1));
    let binary = |exponent| Some((1024_u128.pow(exponent), 1));
    match unit {
        "" => times(0),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => times(3),
        "M" => times(6),
        "G" => times(9),
        "T" => times(12),
        "P" => times(15),
        "E" => times(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, power) } else { (power, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{thousandths, whole};

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        let table: [(&str, Option<u128>); 16] = [
            ("1Gi", Some(1 << 30)),
            ("1.5Gi", Some(3 << 29)),
            ("512M", Some(512_000_000)),
            ("100k", Some(100_000)),
            ("1e9", Some(1_000_000_000)),
            ("12E2", Some(1200)),
            ("25e-1", Some(2)),
            ("1500m", Some(1)),
            ("128974848", Some(128_974_848)),
            ("+3Ki", Some(3072)),
            (".5Ki", Some(512)),
            ("2Ei", Some(2 << 60)),
            ("", None),
            ("Gi", None),
            ("1Zi", None),
            ("one", None),
        ];
        for (text, number) in table {
            assert_eq!(whole(text), number, "{text}");
        }
        assert_eq!(
            ["1500m", "2", "0.25", "1Ki"].map(thousandths),
            [Some(1500), Some(2000), Some(250), Some(1_024_000)]
        );
    }
}
