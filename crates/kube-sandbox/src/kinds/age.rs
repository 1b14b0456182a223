//! Ages as kubectl shows them: `5s`, `3m20s`, `4d`.

use jiff::Timestamp;
use serde_json::Value;

/// The time since a timestamp of an object; `<unknown>` where there is none.
pub fn since(timestamp: &Value, now: Timestamp) -> String {
    match timestamp.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(then) => human(now.as_second() - then.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// A number of seconds in at most two units.
pub fn human(seconds: i64) -> String {
    let two = |first: i64, unit: &str, second: i64, small: &str| {
        if second == 0 {
            format!("{first}{unit}")
        } else {
            format!("{first}{unit}{second}{small}")
        }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        s if s < -1 => "<invalid>".to_owned(),
        s if s < 0 => "0s".to_owned(),
        s if s < 120 => format!("{s}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => two(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn ages_have_at_most_two_units() {
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (201, "3m21s"),
            (600, "10m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (63_072_000, "2y"),
            (70_000_000, "2y80d"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
