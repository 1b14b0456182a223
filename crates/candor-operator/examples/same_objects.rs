//! `same_objects ONE OTHER`: whether two files of manifests hold the same objects, in any order. `make chart` holds what
//! Helm renders against what `candor install --render` writes. Two things differ on purpose and are left out: Helm makes
//! the namespace itself, and marks the definitions to be kept.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;

fn objects(path: &str) -> Result<BTreeMap<String, Value>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut found = BTreeMap::new();
    for document in serde_norway::Deserializer::from_str(&text) {
        let mut object = Value::deserialize(document)?;
        if object.is_null() || object["kind"] == "Namespace" {
            continue;
        }
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty()
                && let Some(metadata) = object["metadata"].as_object_mut()
            {
                metadata.remove("annotations");
            }
        } else if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("annotations");
        }
        let metadata = &object["metadata"];
        let name = format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]);
        if found.insert(name.clone(), object).is_some() {
            return Err(format!("{path} holds {name} twice").into());
        }
    }
    Ok(found)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(one), Some(other)) = (arguments.next(), arguments.next()) else {
        return Err("two files are compared: same_objects ONE OTHER".into());
    };
    let (first, second) = (objects(&one)?, objects(&other)?);
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let mut code = ExitCode::SUCCESS;
    for name in names {
        let (here, there) = (first.get(name), second.get(name));
        if here != there {
            let text = |object: Option<&Value>| object.map_or("nothing".to_owned(), ToString::to_string);
            eprintln!("{name}\n  {one}: {}\n  {other}: {}", text(here), text(there));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}
