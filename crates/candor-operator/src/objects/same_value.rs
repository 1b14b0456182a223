//! Compares a value that a server reports with the desired value: servers format values differently.

/// Whether `observed`, the reply to `CONFIG GET`, means the same as `desired`, the value that was set.
pub fn agrees(key: &str, desired: &str, observed: &str) -> bool {
    let (desired, observed) = (desired.trim(), observed.trim());
    if desired == observed || words(desired).eq(words(observed)) {
        return true;
    }
    match key {
        "client-output-buffer-limit" => limits(desired, observed),
        "notify-keyspace-events" => classes(desired) == classes(observed),
        _ => match (number(desired), number(observed)) {
            (Some(desired), Some(observed)) => desired == observed,
            // Servers ignore the case of enum values. A value with any other character in it is compared exactly.
            _ => desired.chars().all(|c| c.is_ascii_alphabetic() || c == '-') && desired.eq_ignore_ascii_case(observed),
        },
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// A number with the units of the servers: `k` is 1000 and `kb` is 1024.
fn number(text: &str) -> Option<i128> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let times: i128 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<i128>().ok()?.checked_mul(times)
}

/// Whether each class in `desired` has its limits. The server reports all classes.
fn limits(desired: &str, observed: &str) -> bool {
    let of = |text: &str| -> Vec<(String, Vec<Option<i128>>)> {
        let all: Vec<&str> = words(text).collect();
        let class = |name: &str| {
            if name.eq_ignore_ascii_case("replica") {
                "slave".to_owned()
            } else {
                name.to_ascii_lowercase()
            }
        };
        all.chunks(4)
            .map(|one| (class(one[0]), one[1..].iter().map(|limit| number(limit)).collect()))
            .collect()
    };
    let observed = of(observed);
    of(desired).iter().all(|class| observed.contains(class))
}

/// The letters of the keyspace notification classes in order, with `A` expanded.
fn classes(text: &str) -> Vec<char> {
    let spelled = text.trim_matches('"').replace('A', "g$lshzxetd");
    let mut letters: Vec<char> = spelled.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    letters
}

#[cfg(test)]
mod tests {
    use super::agrees;

    #[test]
    fn a_value_agrees_with_the_servers_way_of_writing_it() {
        let table = [
            ("maxmemory", "100mb", "104857600", true),
            ("maxmemory", "100m", "100000000", true),
            ("maxmemory", "100mb", "100000000", false),
            ("maxmemory-policy", "AllKeys-LRU", "allkeys-lru", true),
            ("maxmemory-clients", "5%", "5%", true),
            ("maxmemory-clients", "5%", "5", false),
            ("save", "3600 1  300 100", "3600 1 300 100", true),
            ("save", "", "", true),
            ("save", "", "3600 1", false),
            ("appendonly", "Yes", "yes", true),
            ("notify-keyspace-events", "EKA", "AKE", true),
            ("notify-keyspace-events", "Kg$lshzxetd", "AK", true),
            ("notify-keyspace-events", "K", "AK", false),
            (
                "client-output-buffer-limit",
                "replica 256mb 64mb 60",
                "normal 0 0 0 slave 268435456 67108864 60",
                true,
            ),
            (
                "client-output-buffer-limit",
                "replica 256mb 64mb 61",
                "normal 0 0 0 slave 268435456 67108864 60",
                false,
            ),
            ("proc-title-template", "{title} A", "{title} a", false),
            ("hz", "10", "11", false),
        ];
        for (key, desired, observed, agree) in table {
            assert_eq!(agrees(key, desired, observed), agree, "{key}: {desired:?} {observed:?}");
        }
    }
}
