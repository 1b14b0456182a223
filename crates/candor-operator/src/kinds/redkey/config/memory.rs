//! Amounts of memory in `redis.conf` syntax, and the resources that follow from `maxmemory`.

use std::collections::BTreeMap;

use candor_api::redkey::spec::Resources;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const MEBIBYTE: u64 = 1024 * 1024;

/// Memory that a server needs in addition to its data: connections, replication buffers, the program itself.
const BESIDE_DATA: u64 = 300 * MEBIBYTE;

/// `100`, `100mb`, `2GB`, `1k`: bytes. `k`, `m` and `g` are powers of 1000, `kb`, `mb` and `gb` powers of 1024.
///
/// ```
/// use candor_operator::kinds::redkey::config::memory::bytes;
/// assert_eq!(bytes("1600mb"), Some(1600 * 1024 * 1024));
/// assert_eq!(bytes("much"), None);
/// ```
pub fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let times: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1024,
        "m" => 1000 * 1000,
        "mb" => MEBIBYTE,
        "g" => 1000 * 1000 * 1000,
        "gb" => 1024 * MEBIBYTE,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(times)
}

/// The resources of a server if the spec names none: `maxmemory` plus 300Mi, and one CPU, as request and as limit. A
/// server without `maxmemory` has no memory limit, because the kernel would kill it when it reaches the limit.
pub fn resources(maxmemory: u64) -> Resources {
    let amount = |bytes: u64| {
        if bytes.is_multiple_of(MEBIBYTE) {
            Quantity(format!("{}Mi", bytes / MEBIBYTE))
        } else {
            Quantity(bytes.to_string())
        }
    };
    let cpu = ("cpu".to_owned(), Quantity("1".to_owned()));
    let memory = ("memory".to_owned(), amount(maxmemory.saturating_add(BESIDE_DATA)));
    let requests = BTreeMap::from([cpu.clone(), memory.clone()]);
    let limits = if maxmemory == 0 {
        BTreeMap::from([cpu])
    } else {
        BTreeMap::from([cpu, memory])
    };
    Resources {
        requests,
        limits,
        claims: Vec::new(),
    }
}
