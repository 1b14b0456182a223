//! The string formats that a real server checks in custom resources. Every other format, `int32` among them, is ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::Date;
use regex::Regex;

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"));
static EMAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^@\s]+@[^@\s]+$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9]))*\.?$",
    )
});
static MAC: LazyLock<Regex> = LazyLock::new(|| pattern("^([0-9a-fA-F]{2}[:-]){5,7}[0-9a-fA-F]{2}$"));
static COLOR: LazyLock<Regex> = LazyLock::new(|| pattern("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| pattern("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"));
static LONG_NAME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));
static GO_DURATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"));
static LONG_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*[-+]?[0-9]+\s*(ns|nanos?|nanoseconds?|us|µs|μs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|w|wks?|weeks?)\s*$",
    )
});

/// The patterns above are constants that compile.
fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a constant pattern compiles")
}

/// Whether `text` has `format`; true for formats that are not checked.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "datetime" => text.parse::<Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
        "duration" => GO_DURATION.is_match(text) || LONG_DURATION.is_match(text),
        "uri" => {
            text.starts_with('/')
                || text
                    .split_once(':')
                    .is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        }
        "email" => EMAIL.is_match(text),
        "hostname" => text.len() <= 255 && HOSTNAME.is_match(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => MAC.is_match(text),
        "uuid" => UUID.is_match(text),
        "uuid3" => UUID.is_match(text) && uuid_version(text) == Some('3'),
        "uuid4" => UUID.is_match(text) && uuid_version(text) == Some('4'),
        "uuid5" => UUID.is_match(text) && uuid_version(text) == Some('5'),
        "hexcolor" => COLOR.is_match(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "k8sshortname" => SHORT_NAME.is_match(text),
        "k8slongname" => text.len() <= 253 && LONG_NAME.is_match(text),
        _ => true,
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        let most = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        length.parse::<u8>().is_ok_and(|length| length <= most)
    })
}

fn uuid_version(text: &str) -> Option<char> {
    text.chars().filter(|c| *c != '-').nth(12)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn formats_hold_for_what_they_describe() {
        for (format, good, bad) in [
            ("date-time", "2026-11-15T20:00:00Z", "yesterday"),
            ("date", "2026-11-15", "2026-13-40"),
            ("duration", "1h30m", "soon"),
            ("uri", "https://example.com/x", "example"),
            ("ipv4", "10.0.0.1", "::1"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uuid", "550e8400-e29b-41d4-a716-446655440000", "550e8400"),
            ("byte", "aGk=", "%"),
            ("hostname", "a.example.com", "-a-"),
            ("k8s-short-name", "a-b", "A.b"),
        ] {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
        assert!(matches("int32", "anything"));
    }
}
