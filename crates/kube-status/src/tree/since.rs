//! How long ago, in the few characters that kubectl spends on it.

use jiff::Timestamp;

/// The time between `then` and `now`: finer when short, coarser when long, never negative.
///
/// ```
/// use kube_status::tree::since;
///
/// let then: jiff::Timestamp = "2026-02-05T10:00:00Z".parse()?;
/// assert_eq!(since(then, "2026-02-05T10:01:40Z".parse()?), "100s");
/// assert_eq!(since(then, "2026-02-05T10:05:10Z".parse()?), "5m10s");
/// assert_eq!(since(then, "2026-02-08T14:00:00Z".parse()?), "3d4h");
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn since(then: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    let two = |big: i64, big_unit: char, small: i64, small_unit: char| {
        let rest = seconds % big / small;
        let whole = seconds / big;
        if rest == 0 {
            format!("{whole}{big_unit}")
        } else {
            format!("{whole}{big_unit}{rest}{small_unit}")
        }
    };
    match seconds {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(MINUTE, 'm', 1, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(HOUR, 'h', MINUTE, 'm'),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(DAY, 'd', HOUR, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(YEAR, 'y', DAY, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_grows_with_the_time() {
        let hour = 3600;
        let day = 24 * hour;
        for (seconds, text) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 300, "3h5m"),
            (8 * hour, "8h"),
            (2 * day - 1, "47h"),
            (2 * day, "2d"),
            (2 * day + 3 * hour, "2d3h"),
            (8 * day, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (731 * day, "2y1d"),
            (9 * 365 * day, "9y"),
        ] {
            let now = Timestamp::from_second(1_000_000_000 + seconds).unwrap();
            assert_eq!(since(Timestamp::from_second(1_000_000_000).unwrap(), now), text);
        }
    }
}
