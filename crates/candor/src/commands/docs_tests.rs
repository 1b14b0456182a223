//! Tests of the docs: links have a target, commands of this program parse as written, and an API server accepts the
//! manifests.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube_sandbox::Sandbox;
use serde::Deserialize;
use serde_json::json;

use super::command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page with its text.
fn pages() -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    let at_the_root = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let mut found: Vec<PathBuf> = at_the_root.map(|page| root().join(page)).into();
    collect(&root().join("docs"), &mut found);
    found.sort();
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    found.into_iter().map(read).collect()
}

/// A heading as a link anchor.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    for (path, text) in pages() {
        for rest in text.split("](").skip(1) {
            let Some(target) = rest.split(')').next() else { continue };
            if target.contains("://") || target.contains(' ') {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let there = if file.is_empty() {
                path.clone()
            } else {
                path.parent().unwrap().join(file)
            };
            assert!(there.exists(), "{}: {target} leads nowhere", path.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&there).unwrap();
                let known = text.lines().filter_map(|line| line.strip_prefix('#'));
                let known = known.map(|line| anchor(line.trim_start_matches('#').trim()));
                assert!(
                    known.into_iter().any(|one| one == heading),
                    "{}: {target} names no heading",
                    path.display()
                );
            }
        }
    }
}

/// The command lines in the code blocks of a text, without the prompt and without shell syntax.
fn lines(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if !fenced && !line.starts_with("    ") {
            continue;
        }
        let line = line.trim().trim_start_matches("$ ");
        let line = line
            .strip_prefix("kubectl candor ")
            .map_or(line.to_owned(), |rest| format!("candor {rest}"));
        if line.starts_with("candor ") {
            found.push(first_command(&line).to_owned());
        }
    }
    found
}

/// The part of a line before shell syntax or a comment.
fn first_command(line: &str) -> &str {
    let ends = ["  ", " | ", " > ", " && ", " &", " #", ";"];
    let end = ends.iter().filter_map(|end| line.find(end)).min();
    &line[..end.unwrap_or(line.len())]
}

#[track_caller]
fn parses(place: &str, line: &str) {
    let words = line.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
    match command(None).try_get_matches_from(words) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
        Err(error) => panic!("{place}: {line}\n{error}"),
    }
}

#[test]
fn every_command_in_the_docs_can_be_typed() {
    let mut count = 0;
    for (path, text) in pages() {
        for line in lines(&text) {
            parses(&path.display().to_string(), &line);
            count += 1;
        }
    }
    assert!(count > 20, "{count} commands");
}

#[test]
fn every_example_in_the_help_can_be_typed() {
    for word in command(None).get_subcommands() {
        let help = word.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().map(str::trim).filter(|line| line.starts_with("candor ")) {
            parses(word.get_name(), first_command(line));
        }
    }
}

/// The manifests in the code blocks of a text.
fn manifests(text: &str) -> Vec<serde_json::Value> {
    let blocks = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let mut found = Vec::new();
    for block in blocks {
        for document in serde_norway::Deserializer::from_str(block) {
            let value = serde_json::Value::deserialize(document).unwrap_or_else(|error| panic!("{error}:\n{block}"));
            if value["kind"].is_string() && value["apiVersion"].is_string() {
                found.push(value);
            }
        }
    }
    found
}

/// An API server that has the CRDs and no operator.
async fn api_server() -> Sandbox {
    let sandbox = Sandbox::bare().await.unwrap();
    let client = sandbox.client();
    for definition in candor_api::crds::all() {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = definition.metadata.name.clone().unwrap();
        let applied = api
            .patch(&name, &PatchParams::apply("t").force(), &Patch::Apply(&definition))
            .await;
        applied.unwrap();
    }
    sandbox
}

/// Creates an object; the API server serves a CRD a moment after its creation.
async fn create(api: &Api<DynamicObject>, params: &PostParams, object: &DynamicObject) -> kube::Result<DynamicObject> {
    let mut last = api.create(params, object).await;
    let begun = std::time::Instant::now();
    while matches!(&last, Err(kube::Error::Api(status)) if status.code == 404) && begun.elapsed().as_secs() < 10 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        last = api.create(params, object).await;
    }
    last
}

#[tokio::test]
async fn every_manifest_in_the_docs_is_accepted_by_an_api_server() {
    let sandbox = api_server().await;
    let client = sandbox.client();
    let mut count = 0;
    for (path, text) in pages() {
        for manifest in manifests(&text) {
            let mut object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
            let types = object.types.clone().unwrap();
            if ["monitoring.coreos.com/", "autoscaling/"]
                .iter()
                .any(|group| types.api_version.starts_with(group))
            {
                continue;
            }
            // A page may use any namespace of the reader's.
            object.metadata.namespace = None;
            let resource = ApiResource::from_gvk(&(&types).try_into().unwrap());
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
            let params = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let stored = create(&api, &params, &object).await;
            let stored = stored.unwrap_or_else(|error| panic!("{}: {error}\n{manifest:#}", path.display()));
            // A field that the schema does not know would have been dropped silently.
            assert_eq!(stored.data["spec"], manifest["spec"], "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 5, "{count} manifests");
}

#[tokio::test]
async fn what_the_docs_say_cannot_be_changed_is_refused_in_their_words() {
    let sandbox = api_server().await;
    let persistence = |size: &str| json!({"persistence": {"size": size}});
    let tls = json!({"networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}}});
    let table = [
        (
            "persistence",
            json!({}),
            persistence("1Gi"),
            "persistence cannot be added after creation",
        ),
        (
            "persistence",
            persistence("1Gi"),
            json!({"persistence": null}),
            "persistence cannot be removed once set",
        ),
        (
            "persistence",
            persistence("2Gi"),
            persistence("1Gi"),
            "persistence.size may only be expanded",
        ),
        (
            "tls",
            json!({}),
            tls.clone(),
            "networking.tls cannot be added or removed after creation",
        ),
        (
            "tls",
            tls.clone(),
            json!({"networking": null}),
            "networking.tls cannot be added or removed after creation",
        ),
        (
            "tls",
            tls,
            json!({"networking": {"tls": null}}),
            "networking.tls cannot be added or removed after creation",
        ),
    ];
    let resource = ApiResource::erase::<candor_api::ValkeyCluster>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(sandbox.client(), &resource);
    for (index, (page, before, change, words)) in table.into_iter().enumerate() {
        let name = format!("c{index}");
        let mut object = DynamicObject::new(&name, &resource).data(json!({"spec": before}));
        object.data["spec"]["shards"] = json!(3);
        create(&api, &PostParams::default(), &object).await.unwrap();
        let rejected = api
            .patch(&name, &PatchParams::default(), &Patch::Merge(json!({"spec": change})))
            .await;
        let rejected = rejected.expect_err(words).to_string();
        assert!(rejected.contains(words), "{rejected}");
        let page = fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        let text_of_page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text_of_page.contains(words), "the page does not say: {words}");
    }
}
