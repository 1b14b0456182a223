//! Times, uids and name suffixes as the API writes them.

use std::fmt::Write;

use jiff::Timestamp;

/// Now, in whole seconds: `2026-01-02T03:04:05Z`.
pub fn now() -> String {
    seconds(Timestamp::now())
}

/// A time in whole seconds.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Some random bytes.
pub fn random<const N: usize>() -> [u8; N] {
    use ring::rand::SecureRandom;
    let mut bytes = [0; N];
    // The system's source of randomness fails only before boot has finished; a predictable uid is then harmless.
    let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
    bytes
}

/// A new uid (version 4).
pub fn uid() -> String {
    let mut b: [u8; 16] = random();
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    let mut out = String::with_capacity(36);
    for (i, byte) in b.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// A name from `generateName`: at most 58 characters of it and five random ones without vowels.
pub fn generated_name(base: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let base: String = base.chars().take(58).collect();
    let suffix: String = random::<5>()
        .iter()
        .map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()]))
        .collect();
    base + &suffix
}
