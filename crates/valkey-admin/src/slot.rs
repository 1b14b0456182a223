//! Slots: one, a range, a set.

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

    /// A slot, if the number is one.
    pub fn new(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    /// Its number.
    pub fn get(self) -> u16 {
        self.0
    }

    /// The slot of a key: CRC16 of the key, or of what stands in its first non-empty `{}`.
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
    /// A range, if it is not empty.
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

    /// The slots that shard `index` of `shards` has in an evenly laid out cluster: shard i starts at
    /// round(i * 16384 / n).
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

const WORDS: usize = SLOTS as usize / 64;

/// A set of slots: 2 KiB, no allocation per operation on its members.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SlotSet(Box<[u64; WORDS]>);

impl SlotSet {
    /// The empty set.
    pub fn new() -> Self {
        Self(Box::new([0; WORDS]))
    }

    /// Every slot.
    pub fn full() -> Self {
        Self(Box::new([u64::MAX; WORDS]))
    }

    /// Adds one; says whether it was new.
    pub fn insert(&mut self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Takes one out; says whether it was there.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        let had = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        had
    }

    /// Whether it is in the set.
    pub fn contains(&self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        self.0[word] & bit != 0
    }

    /// How many slots.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Whether every slot is in it.
    pub fn is_full(&self) -> bool {
        self.0.iter().all(|&word| word == u64::MAX)
    }

    /// Slots in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    /// Slots in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    /// Slots here and not there.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & !b)
    }

    fn combine(&self, other: &Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        let mut result = Self::new();
        for (to, (a, b)) in result.0.iter_mut().zip(self.0.iter().zip(other.0.iter())) {
            *to = operation(*a, *b);
        }
        result
    }

    /// Its slots, in order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                let number = index * 64 + bit as usize;
                (bit < 64)
                    .then(|| u16::try_from(number).ok().and_then(Slot::new))
                    .flatten()
            })
        })
    }

    /// Its slots as the fewest ranges, in order.
    pub fn ranges(&self) -> Vec<SlotRange> {
        let mut ranges: Vec<SlotRange> = Vec::new();
        for slot in self.iter() {
            match ranges.last_mut() {
                Some(range) if range.last.0 + 1 == slot.0 => range.last = slot,
                _ => ranges.push(slot.into()),
            }
        }
        ranges
    }
}

/// Which word and which bit of it.
fn place(slot: Slot) -> (usize, u64) {
    (usize::from(slot.0 / 64), 1 << (slot.0 % 64))
}

impl Default for SlotSet {
    fn default() -> Self {
        Self::new()
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
        for slot in ranges.into_iter().flat_map(SlotRange::slots) {
            self.insert(slot);
        }
    }
}

impl From<SlotRange> for SlotSet {
    fn from(range: SlotRange) -> Self {
        std::iter::once(range).collect()
    }
}
