//! How a user names a cluster: `NAME`, or `vkc/NAME` and `rkcl/NAME` where one name is not enough.

use std::fmt;
use std::str::FromStr;

use super::Kind;

/// A name, with a kind if the user wrote one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The kind.
    pub kind: Option<Kind>,
    /// The name.
    pub name: String,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(out, "{}/{}", kind.short(), self.name),
            None => self.name.fmt(out),
        }
    }
}

/// Text that names no cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// The part before the slash is not a kind of cluster.
    #[error("{kind:?} is not a kind of cluster: write {name}, vkc/{name} or rkcl/{name}")]
    Kind {
        /// The part before the slash.
        kind: String,
        /// The part after it.
        name: String,
    },
    /// There is no name.
    #[error("the name of the cluster is missing: write NAME, vkc/NAME or rkcl/NAME")]
    Empty,
}

impl FromStr for Address {
    type Err = NoAddress;
    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (kind, name) = match text.split_once('/') {
            None => (None, text),
            Some((kind, name)) => {
                let known = Kind::parse(kind).ok_or_else(|| NoAddress::Kind {
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                })?;
                (Some(known), name)
            }
        };
        if name.is_empty() {
            return Err(NoAddress::Empty);
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_a_kind_before_it() {
        let address = |kind, name: &str| {
            Ok(Address {
                kind,
                name: name.to_owned(),
            })
        };
        let unknown = |kind: &str, name: &str| {
            Err(NoAddress::Kind {
                kind: kind.to_owned(),
                name: name.to_owned(),
            })
        };
        for (text, parsed) in [
            ("shop", address(None, "shop")),
            ("vkc/shop", address(Some(Kind::ValkeyCluster), "shop")),
            ("rkcl/shop", address(Some(Kind::RedkeyCluster), "shop")),
            ("redkeycluster/shop", address(Some(Kind::RedkeyCluster), "shop")),
            (
                "valkeycluster.valkey.io/shop",
                address(Some(Kind::ValkeyCluster), "shop"),
            ),
            ("pod/shop", unknown("pod", "shop")),
            ("", Err(NoAddress::Empty)),
            ("rkcl/", Err(NoAddress::Empty)),
        ] {
            assert_eq!(text.parse(), parsed, "{text}");
        }
    }
}
