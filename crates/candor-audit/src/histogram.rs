//! A latency histogram that takes a few kilobytes for any number of values.

use std::time::Duration;

/// Buckets per doubling: a percentile is at most 1/32 too high.
const FINE: u32 = 32;
const FINE_BITS: u32 = FINE.ilog2();

/// Counts of durations, by microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        // 2^40 microseconds are twelve days.
        Self {
            counts: vec![0; (FINE * 36) as usize],
            total: 0,
            longest: Duration::ZERO,
        }
    }
}

impl Histogram {
    pub fn add(&mut self, took: Duration) {
        let last = self.counts.len() - 1;
        self.counts[bucket(micros(took)).min(last)] += 1;
        self.total += 1;
        self.longest = self.longest.max(took);
    }

    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The time within which this many of a thousand completed: the upper edge of its bucket.
    pub fn permille(&self, of_thousand: u64) -> Duration {
        let desired = (self.total * of_thousand).div_ceil(1000);
        let mut sum = 0;
        for (index, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum >= desired && sum > 0 {
                return Duration::from_micros(edge(index)).min(self.longest);
            }
        }
        self.longest
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

/// Below `FINE` one bucket each; above, `FINE` buckets per doubling.
fn bucket(micros: u64) -> usize {
    let doublings = (64 - micros.leading_zeros()).saturating_sub(FINE_BITS + 1);
    let index = u64::from(doublings * FINE) + (micros >> doublings);
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The largest value that falls into a bucket.
fn edge(index: usize) -> u64 {
    let fine = FINE as usize;
    if index < 2 * fine {
        return index as u64;
    }
    let doublings = index / fine - 1;
    let step = index % fine + fine;
    ((step as u64 + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket_and_the_bucket_is_narrow(micros in 0u64..1 << 39) {
            let index = bucket(micros);
            prop_assert!(micros <= edge(index));
            prop_assert!(index == 0 || micros > edge(index - 1));
            prop_assert!(edge(index) - micros <= micros / 32);
        }
    }

    #[test]
    fn percentiles_of_a_thousand_even_steps() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|ms| histogram.add(Duration::from_millis(ms)));
        for (permille, ms) in [(500, 500), (990, 990), (999, 999), (1000, 1000)] {
            let got = histogram.permille(permille).as_millis();
            assert!((ms..=ms + ms / 32).contains(&got), "{permille}: {got}");
        }
        assert_eq!(histogram.longest(), Duration::from_secs(1));
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Histogram::default().permille(990), Duration::ZERO);
    }
}
