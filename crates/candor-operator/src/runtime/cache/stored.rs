//! An object as a cache stores it: decoded, or as JSON text.

use std::sync::Arc;

use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A cached object.
pub(super) struct Stored<K> {
    pub(super) uid: Option<String>,
    pub(super) version: Option<String>,
    body: Body<K>,
}

/// A decoded pod template takes five times as much memory as its JSON text: every decoded volume is as large as the
/// largest volume type.
enum Body<K> {
    Open(Arc<K>),
    Packed(Arc<[u8]>),
}

impl<K> Clone for Stored<K> {
    fn clone(&self) -> Self {
        Self {
            uid: self.uid.clone(),
            version: self.version.clone(),
            body: match &self.body {
                Body::Open(object) => Body::Open(object.clone()),
                Body::Packed(text) => Body::Packed(text.clone()),
            },
        }
    }
}

impl<K: Resource + Serialize + DeserializeOwned> Stored<K> {
    pub(super) fn open(object: &Arc<K>) -> Self {
        Self {
            uid: object.uid(),
            version: object.resource_version(),
            body: Body::Open(object.clone()),
        }
    }

    pub(super) fn packed(object: &Arc<K>) -> Self {
        let mut stored = Self::open(object);
        if let Ok(text) = serde_json::to_vec(&**object) {
            stored.body = Body::Packed(text.into());
        }
        stored
    }

    pub(super) fn object(&self) -> Arc<K> {
        match &self.body {
            Body::Open(object) => object.clone(),
            Body::Packed(text) => Arc::new(serde_json::from_slice(text).expect("it was written by the same type")),
        }
    }
}
