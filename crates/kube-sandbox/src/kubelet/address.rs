//! Loopback addresses: a /16 of 127.0.0.0/8 for each sandbox, an address of it for each pod.
//!
//! All sandboxes of a host, of any user, reserve their /16 with abstract Unix sockets: such a name belongs to one process
//! at a time and is free again as soon as that process has ended, in whatever way. Like loopback addresses, these names
//! exist once per network namespace.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

/// No address is free.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Every /16 is in use.
    #[error("all 253 loopback ranges 127.x.0.0/16 are taken by other sandboxes; end one of them")]
    AllTaken,
    /// Every address of the /16 is in use.
    #[error("all pod addresses of {0}/16 are in use; delete pods")]
    Full(Ipv4Addr),
}

/// The /16 of one sandbox.
#[derive(Debug)]
pub struct Subnet {
    second: u8,
    used: Mutex<Used>,
    _claim: UnixListener,
}

#[derive(Debug, Default)]
struct Used {
    next: u16,
    taken: HashSet<u16>,
}

/// The first addresses of a range are kept for the sandbox itself, the last ones for services.
const PODS: std::ops::Range<u16> = 0x0100..0xf000;

impl Subnet {
    /// A /16 that no other sandbox of this host holds, until this value is dropped.
    pub fn claim() -> Result<Self, AddressError> {
        let start = std::process::id();
        (0..253)
            .map(|n| 2 + u8::try_from((start + n) % 253).unwrap_or(0))
            .find_map(Self::try_claim)
            .ok_or(AddressError::AllTaken)
    }

    fn try_claim(second: u8) -> Option<Self> {
        let name = format!("kube-sandbox/127.{second}.0.0/16");
        let address = SocketAddr::from_abstract_name(name).ok()?;
        Some(Self {
            second,
            used: Mutex::default(),
            _claim: UnixListener::bind_addr(&address).ok()?,
        })
    }

    /// 127.x.0.`host`: for the sandbox itself, never given to a pod.
    pub fn own(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.second, 0, host)
    }

    /// An address for a pod. The address of a deleted pod is reused as late as possible, so that a client that still dials
    /// it does not reach another pod.
    pub fn take(&self) -> Result<Ipv4Addr, AddressError> {
        let mut used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for _ in PODS {
            let host = used.next.clamp(PODS.start, PODS.end - 1);
            used.next = if host + 1 == PODS.end { PODS.start } else { host + 1 };
            let [third, fourth] = host.to_be_bytes();
            if !matches!(fourth, 0 | 255) && used.taken.insert(host) {
                return Ok(Ipv4Addr::new(127, self.second, third, fourth));
            }
        }
        Err(AddressError::Full(self.own(0)))
    }

    /// The pod is gone.
    pub fn release(&self, address: Ipv4Addr) {
        let [_, _, third, fourth] = address.octets();
        let mut used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        used.taken.remove(&u16::from_be_bytes([third, fourth]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sandboxes_never_share_a_range_and_a_dropped_one_is_free_again() {
        let first = Subnet::claim().unwrap();
        let second = Subnet::claim().unwrap();
        assert_ne!(first.own(1), second.own(1));
        let range = first.second;
        assert!(Subnet::try_claim(range).is_none());
        drop(first);
        assert!(Subnet::try_claim(range).is_some());
    }

    #[test]
    fn a_released_address_is_not_reused_at_once() {
        let subnet = Subnet::claim().unwrap();
        let first = subnet.take().unwrap();
        subnet.release(first);
        assert_ne!(subnet.take().unwrap(), first);
        assert_eq!(subnet.used.lock().unwrap().taken.len(), 1);
    }
}
