//! The forms in which an untyped object comes.

use serde_json::Value;

/// An object known only as JSON: a `serde_json::Value`, or kube's `DynamicObject` (feature `client`).
///
/// ```
/// use kube_status::{Condition, Conditioned, Malformed, Untyped, UntypedObject};
/// fn count(object: &impl UntypedObject) -> Result<usize, Malformed> {
///     Ok(Untyped::<Condition>::read(object)?.conditions().len())
/// }
/// assert_eq!(count(&serde_json::json!({"kind": "Cache"}))?, 0);
/// # Ok::<_, Malformed>(())
/// ```
pub trait UntypedObject: private::Sealed {
    #[doc(hidden)]
    fn kind(&self) -> &str;
    #[doc(hidden)]
    fn name(&self) -> &str;
    #[doc(hidden)]
    fn generation(&self) -> i64;
    #[doc(hidden)]
    fn has_label(&self, label: &str) -> bool;
    /// What holds the status.
    #[doc(hidden)]
    fn body(&self) -> &Value;
    #[doc(hidden)]
    fn body_mut(&mut self) -> &mut Value;
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Value {}
    #[cfg(feature = "client")]
    impl Sealed for kube::api::DynamicObject {}
}

impl UntypedObject for Value {
    fn kind(&self) -> &str {
        self.get("kind").and_then(Self::as_str).unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.pointer("/metadata/name")
            .and_then(Self::as_str)
            .unwrap_or_default()
    }
    fn generation(&self) -> i64 {
        self.pointer("/metadata/generation").and_then(Self::as_i64).unwrap_or(0)
    }
    fn has_label(&self, label: &str) -> bool {
        let labels = self.pointer("/metadata/labels").and_then(Self::as_object);
        labels.is_some_and(|labels| labels.contains_key(label))
    }
    fn body(&self) -> &Value {
        self
    }
    fn body_mut(&mut self) -> &mut Value {
        self
    }
}

#[cfg(feature = "client")]
impl UntypedObject for kube::api::DynamicObject {
    fn kind(&self) -> &str {
        self.types.as_ref().map_or("", |types| &types.kind)
    }
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
    fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }
    fn has_label(&self, label: &str) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(label))
    }
    fn body(&self) -> &Value {
        &self.data
    }
    fn body_mut(&mut self) -> &mut Value {
        &mut self.data
    }
}
