//! The definitions this project deploys are accepted: every schema is structural, every CEL rule compiles.

use kube_sandbox::kinds::Registry;
use serde_json::Value;

#[test]
fn every_crd_in_deploy_is_accepted() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
    let kind = Registry::builtin()
        .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let mut definition: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(kind.schema.decode_error(&definition), None, "{}", path.display());
        assert!(kind.schema.prune(&mut definition).is_empty(), "{}", path.display());
        kind.schema.default(&mut definition);
        assert_eq!(kind.schema.validate(&definition, None), [], "{}", path.display());
        let registry = Registry::builtin();
        let status = registry.install_crd(&definition, jiff::Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(status["conditions"][1]["status"], "True", "{}", path.display());
        seen += 1;
    }
    assert!(seen > 0, "no definition in {folder}");
}
