//! A slot, a range of slots, a set of slots.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ParseError;

/// How many slots a cluster has.
pub const SLOTS: u16 = 16384;

/// A hash slot, 0 to 16383.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Slot(u16);

impl Slot {
    /// The last slot.
    pub const LAST: Self = Self(SLOTS - 1);

    /// Returns the slot, if the number is valid.
    pub fn new(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    /// Its number.
    pub fn get(self) -> u16 {
        self.0
    }

    /// Returns the slot of a key: CRC16 of the key, or of its hash tag (the first non-empty `{}`).
    ///
    /// ```
    /// use valkey_admin::Slot;
    /// assert_eq!(Slot::of_key(b"foo").get(), 12182);
    /// assert_eq!(Slot::of_key(b"{foo}.bar"), Slot::of_key(b"foo"));
    /// assert_eq!(Slot::of_key(b"{}foo").get(), 9500);
    /// ```
    pub fn of_key(key: &[u8]) -> Self {
        let tag = key.iter().position(|&b| b == b'{').and_then(|open| {
            let rest = &key[open + 1..];
            let close = rest.iter().position(|&b| b == b'}')?;
            (close > 0).then(|| &rest[..close])
        });
        Self(crc16(tag.unwrap_or(key)) % SLOTS)
    }

    /// All slots, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..SLOTS).map(Self)
    }
}

/// CRC16 XMODEM, the cluster's hash.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    })
}

impl TryFrom<u16> for Slot {
    type Error = ParseError;
    fn try_from(number: u16) -> Result<Self, ParseError> {
        Self::new(number).ok_or_else(|| ParseError::new("slot", "a number from 0 to 16383", number))
    }
}

impl From<Slot> for u16 {
    fn from(slot: Slot) -> u16 {
        slot.0
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Slot {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = text.parse::<u16>().ok().and_then(Self::new);
        number.ok_or_else(|| ParseError::new("slot", "a number from 0 to 16383", text))
    }
}

/// Slots from `first` to `last`, both included, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SlotRange {
    first: Slot,
    last: Slot,
}

impl SlotRange {
    /// Returns the range, if it is not empty.
    pub fn new(first: Slot, last: Slot) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// Its first slot.
    pub fn first(self) -> Slot {
        self.first
    }

    /// Its last slot.
    pub fn last(self) -> Slot {
        self.last
    }

    /// How many slots; at least 1.
    pub fn count(self) -> u16 {
        self.last.0 - self.first.0 + 1
    }

    /// Its slots, in order.
    pub fn slots(self) -> impl DoubleEndedIterator<Item = Slot> {
        (self.first.0..=self.last.0).map(Slot)
    }

    /// Returns the slots of shard `index` in a balanced cluster of `shards`: shard i starts at round(i * 16384 / n).
    ///
    /// ```
    /// use valkey_admin::SlotRange;
    /// let three: Vec<String> = (0..3).filter_map(|i| SlotRange::of_shard(i, 3)).map(|r| r.to_string()).collect();
    /// assert_eq!(three, ["0-5460", "5461-10922", "10923-16383"]);
    /// ```
    pub fn of_shard(index: u32, shards: u32) -> Option<Self> {
        if index >= shards || shards > u32::from(SLOTS) {
            return None;
        }
        let start = |i: u32| {
            let (i, n) = (u64::from(i), u64::from(shards));
            u16::try_from((2 * i * u64::from(SLOTS) + n) / (2 * n)).ok()
        };
        Self::new(Slot::new(start(index)?)?, Slot::new(start(index + 1)?.checked_sub(1)?)?)
    }
}

impl From<Slot> for SlotRange {
    fn from(slot: Slot) -> Self {
        Self {
            first: slot,
            last: slot,
        }
    }
}

impl fmt::Display for SlotRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            self.first.fmt(f)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl FromStr for SlotRange {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Self::new(first.parse()?, last.parse()?).ok_or_else(|| ParseError::new("slot range", "first-last", text))
    }
}

impl TryFrom<String> for SlotRange {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<SlotRange> for String {
    fn from(range: SlotRange) -> String {
        range.to_string()
    }
}

/// A set of slots. Its memory is proportional to its text, not 2 KiB: a server decides how many sets its map has.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SlotSet(
    /// Sorted, and neither overlapping nor adjacent.
    Vec<SlotRange>,
);

impl SlotSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every slot.
    pub fn full() -> Self {
        Self(vec![SlotRange {
            first: Slot(0),
            last: Slot(SLOTS - 1),
        }])
    }

    /// Adds a slot; returns whether it was new.
    pub fn insert(&mut self, slot: Slot) -> bool {
        let new = !self.contains(slot);
        if new {
            self.insert_range(slot.into());
        }
        new
    }

    fn insert_range(&mut self, range: SlotRange) {
        // Overlapping and adjacent ranges are merged with it.
        let begin = match self.0.last() {
            Some(last) if last.last.0 + 1 >= range.first.0 => {
                self.0.partition_point(|one| one.last.0 + 1 < range.first.0)
            }
            _ => self.0.len(),
        };
        let joined = self.0[begin..].partition_point(|one| one.first.0 <= range.last.0 + 1);
        match self.0[begin..begin + joined] {
            [] => self.0.insert(begin, range),
            [first, ..] => {
                let last = self.0[begin + joined - 1];
                self.0[begin] = SlotRange {
                    first: first.first.min(range.first),
                    last: last.last.max(range.last),
                };
                self.0.drain(begin + 1..begin + joined);
            }
        }
    }

    /// Removes a slot; returns whether it was in the set.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let at = self.0.partition_point(|one| one.last < slot);
        let Some(range) = self.0.get(at).copied().filter(|range| range.first <= slot) else {
            return false;
        };
        let before = slot
            .0
            .checked_sub(1)
            .and_then(|last| SlotRange::new(range.first, Slot(last)));
        let after = SlotRange::new(Slot(slot.0 + 1), range.last);
        self.0.splice(at..=at, before.into_iter().chain(after));
        true
    }

    /// Whether a slot is in the set.
    pub fn contains(&self, slot: Slot) -> bool {
        let at = self.0.partition_point(|one| one.last < slot);
        self.0.get(at).is_some_and(|range| range.first <= slot)
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.0.iter().map(|range| usize::from(range.count())).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all slots are in the set.
    pub fn is_full(&self) -> bool {
        self.len() == usize::from(SLOTS)
    }

    /// Slots in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (mut one, mut two) = (self.0.iter().peekable(), other.0.iter().peekable());
        std::iter::from_fn(|| match (one.peek(), two.peek()) {
            (Some(a), Some(b)) if a.first > b.first => two.next(),
            (Some(_), _) => one.next(),
            (None, _) => two.next(),
        })
        .copied()
        .collect()
    }

    /// Slots in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut one, mut two) = (self.0.as_slice(), other.0.as_slice());
        let mut both = Vec::new();
        while let ([a, more_of_one @ ..], [b, more_of_two @ ..]) = (one, two) {
            both.extend(SlotRange::new(a.first.max(b.first), a.last.min(b.last)));
            if a.last < b.last {
                one = more_of_one;
            } else {
                two = more_of_two;
            }
        }
        Self(both)
    }

    /// Slots in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    fn complement(&self) -> Self {
        let mut rest = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for range in &self.0 {
            let before = range.first.0.checked_sub(1);
            rest.extend(before.and_then(|last| SlotRange::new(Slot(next), Slot(last))));
            next = range.last.0 + 1;
        }
        rest.extend(SlotRange::new(Slot(next), Slot(SLOTS - 1)));
        Self(rest)
    }

    /// Its slots, in order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.0.iter().flat_map(|range| range.slots())
    }

    /// Its slots as ranges, in order.
    pub fn ranges(&self) -> Vec<SlotRange> {
        self.0.clone()
    }
}

impl fmt::Display for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.ranges().iter().map(ToString::to_string).collect();
        f.write_str(&ranges.join(","))
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotSet({self})")
    }
}

impl FromStr for SlotSet {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.split(',')
            .filter(|part| !part.is_empty())
            .map(SlotRange::from_str)
            .collect()
    }
}

impl TryFrom<String> for SlotSet {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<SlotSet> for String {
    fn from(set: SlotSet) -> String {
        set.to_string()
    }
}

impl FromIterator<SlotRange> for SlotSet {
    fn from_iter<I: IntoIterator<Item = SlotRange>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        slots.into_iter().map(SlotRange::from).collect()
    }
}

impl Extend<SlotRange> for SlotSet {
    fn extend<I: IntoIterator<Item = SlotRange>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert_range(range);
        }
    }
}

impl From<SlotRange> for SlotSet {
    fn from(range: SlotRange) -> Self {
        std::iter::once(range).collect()
    }
}
