//! kube's `DynamicObject` is read and written as an untyped object.
#![cfg(feature = "client")]

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube_status::{Condition, Conditioned, Draft, Timestamp, Untyped, set};
use serde_json::json;

#[test]
fn a_dynamic_object_is_read_and_written_without_a_copy_as_json() {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Cache"));
    let mut object = DynamicObject::new("c", &resource).data(json!({
        "spec": {"size": 3},
        "status": {"phase": "Up", "conditions": [{"type": "Ready", "status": "True", "extra": 1}]},
    }));
    object.metadata.generation = Some(7);
    let mut cache = Untyped::<Condition>::read(&object).unwrap();
    assert_eq!((cache.kind(), cache.name(), cache.generation()), ("Cache", "c", 7));
    let _ = set(&mut cache, Draft::good("Synced", "Up"), Timestamp::UNIX_EPOCH);
    cache.write_to(&mut object).unwrap();
    let conditions = &object.data["status"]["conditions"];
    assert_eq!(conditions[0], json!({"type": "Ready", "status": "True", "extra": 1}));
    assert_eq!(conditions[1]["observedGeneration"], 7);
    assert_eq!(object.data["status"]["phase"], "Up");
    assert_eq!(object.data["spec"], json!({"size": 3}));
}
