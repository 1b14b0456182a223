//! Manifests in a file, as kubectl reads them: several documents, and lists.

use std::path::Path;

use serde_json::Value;

use crate::commands::cluster::Kind;
use crate::commands::errors::CommandError;

/// The contents of a file.
#[derive(Debug, Default, PartialEq)]
pub struct Manifests {
    /// Its clusters.
    pub clusters: Vec<(Kind, Value)>,
    /// Every other object, by kind and name: it is not planned.
    pub others: Vec<String>,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Manifests, CommandError> {
    let failed = |message: String| CommandError::File {
        path: path.display().to_string(),
        message,
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let found = parse(&text).map_err(failed)?;
    if found.clusters.is_empty() {
        let what = if found.others.is_empty() {
            "nothing".to_owned()
        } else {
            found.others.join(", ")
        };
        return Err(failed(format!(
            "there is no ValkeyCluster and no RedkeyCluster in it, but {what}"
        )));
    }
    Ok(found)
}

fn parse(text: &str) -> Result<Manifests, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    let mut found = Manifests::default();
    for document in documents {
        sort(document, &mut found)?;
    }
    Ok(found)
}

fn sort(document: Value, found: &mut Manifests) -> Result<(), String> {
    let text = |pointer: &str| {
        document
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    if document.is_null() {
        return Ok(());
    }
    if kind.is_empty() {
        return Err("a document in it has no kind: it is no manifest".to_owned());
    }
    if let (true, Some(items)) = (kind.ends_with("List"), document.get("items").and_then(Value::as_array)) {
        return items.iter().try_for_each(|item| sort(item.clone(), found));
    }
    let group = version.split('/').next().unwrap_or_default();
    let of_kind = Kind::ALL
        .into_iter()
        .find(|known| known.name() == kind && known.resource().group == group);
    let Some(of_kind) = of_kind else {
        found.others.push(format!("{kind}/{name}"));
        return Ok(());
    };
    if name.is_empty() {
        return Err(format!("metadata.name of a {kind} is missing"));
    }
    found.clusters.push((of_kind, document));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_hold_several_documents_lists_and_other_kinds() {
        let text = "---\n# a comment\napiVersion: v1\nkind: Secret\nmetadata: {name: users}\n---\n\
            apiVersion: valkey.io/v1alpha1\nkind: ValkeyCluster\nmetadata: {name: a}\nspec: {shards: 1}\n---\n\
            apiVersion: v1\nkind: List\nitems:\n- apiVersion: valkey.io/v1alpha1\n  kind: ValkeyCluster\n  \
            metadata: {name: b}\n  spec: {shards: 2}\n---\napiVersion: redkey.inditex.dev/v1\nkind: RedkeyCluster\n\
            metadata: {name: c}\nspec: {primaries: 3}\n";
        let found = parse(text).unwrap();
        let names: Vec<(Kind, &str)> = found
            .clusters
            .iter()
            .filter_map(|(kind, one)| Some((*kind, one["metadata"]["name"].as_str()?)))
            .collect();
        let (valkey, redkey) = (Kind::ValkeyCluster, Kind::RedkeyCluster);
        assert_eq!(names, [(valkey, "a"), (valkey, "b"), (redkey, "c")]);
        assert_eq!(found.others, ["Secret/users"]);
        assert!(parse("hello: world").unwrap_err().contains("no kind"));
        assert!(
            parse("apiVersion: valkey.io/v1alpha1\nkind: ValkeyCluster\nspec: {}")
                .unwrap_err()
                .contains("metadata.name")
        );
        assert!(parse("a: [").is_err());
    }
}
