//! The acknowledged writes as bitmaps, and which of them are missing.

use crate::slots::SLOTS;

/// The acknowledged writes of every slot.
#[derive(Debug)]
pub(crate) struct Ledger(Vec<Vec<u8>>);

impl Default for Ledger {
    fn default() -> Self {
        Self(vec![Vec::new(); usize::from(SLOTS)])
    }
}

impl Ledger {
    /// Records an acknowledged write.
    pub fn note(&mut self, slot: u16, bit: u32) {
        let bits = &mut self.0[usize::from(slot)];
        let (byte, mask) = place(bit);
        if bits.len() <= byte {
            bits.resize(byte + 1, 0);
        }
        bits[byte] |= mask;
    }

    /// The slots with acknowledged writes.
    pub fn written(&self) -> Vec<u16> {
        (0..SLOTS)
            .filter(|slot| !self.0[usize::from(*slot)].is_empty())
            .collect()
    }

    /// How many acknowledged writes of a slot are missing from the value that its key has now.
    pub fn missing(&self, slot: u16, held: &[u8]) -> u64 {
        let noted = &self.0[usize::from(slot)];
        let lost = |(index, bits): (usize, &u8)| (bits & !held.get(index).copied().unwrap_or(0)).count_ones();
        noted.iter().enumerate().map(lost).map(u64::from).sum()
    }
}

/// The byte and bit mask that SETBIT uses: bit 0 is the highest bit of the first byte.
fn place(bit: u32) -> (usize, u8) {
    ((bit / 8) as usize, 0x80 >> (bit % 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_and_is_not_held_is_lost() {
        let mut ledger = Ledger::default();
        for bit in [0, 3, 9] {
            ledger.note(5, bit);
        }
        assert_eq!(ledger.written(), [5]);
        // The value after SETBIT of bits 0, 3 and 9.
        for (held, lost) in [
            (&[0b1001_0000, 0b0100_0000][..], 0),
            (&[0b1111_1111, 0b1111_1111, 1], 0),
            (&[0b1001_0000], 1),
            (&[0b0000_0000, 0b0100_0000], 2),
            (&[], 3),
        ] {
            assert_eq!(ledger.missing(5, held), lost, "{held:?}");
        }
    }
}
