//! Hash slots as the servers compute them, and a key for each.

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16384;

/// Coprime to the number of slots and close to its golden section: consecutive steps spread over all slots, so that
/// any short period of writes touches every shard and every range in proportion to its size.
const STRIDE: u32 = 10_127;

/// The slot of a key without braces: CRC-16/XMODEM modulo 16384.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let crc = key.iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    });
    crc % SLOTS
}

/// For every slot, a short text that hashes to it.
pub(crate) fn tags() -> Vec<String> {
    let mut tags = vec![String::new(); usize::from(SLOTS)];
    let mut left = tags.len();
    for number in 0u32.. {
        let tag = number.to_string();
        let place = &mut tags[usize::from(slot_of(tag.as_bytes()))];
        if place.is_empty() {
            *place = tag;
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    tags
}

/// The slot that the n-th write goes to.
pub(crate) fn nth(n: u64) -> u16 {
    let slots = u64::from(SLOTS);
    // The product is below 2^28 and the remainder below 2^14.
    #[allow(clippy::cast_possible_truncation)]
    let slot = ((n % slots) * u64::from(STRIDE) % slots) as u16;
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_servers() {
        // The replies of CLUSTER KEYSLOT.
        for (key, slot) in [("foo", 12182), ("123456789", 12739), ("a", 15495), ("", 0)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn every_slot_has_its_tag() {
        for (slot, tag) in tags().iter().enumerate() {
            assert_eq!(usize::from(slot_of(tag.as_bytes())), slot);
        }
    }

    #[test]
    fn a_round_of_writes_touches_every_slot_once_and_every_third_of_them_evenly_at_any_time() {
        let mut observed = vec![0; usize::from(SLOTS)];
        for n in 0..u64::from(SLOTS) {
            observed[usize::from(nth(n))] += 1;
        }
        assert!(observed.iter().all(|times| *times == 1));
        for from in (0..16_000u64).step_by(97) {
            let low = (from..from + 60).filter(|n| nth(*n) < SLOTS / 3).count();
            assert!((15..=25).contains(&low), "{low} of 60 writes from {from} on");
        }
    }
}
