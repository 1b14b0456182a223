//! Stock kubectl on objects: apply, get, describe, edit, patch, delete, explain, auth, api-resources, events.

use std::os::unix::fs::PermissionsExt;

use crate::program::{Kubectl, deployment};
use kube_sandbox::Sandbox;
use serde_json::json;

async fn quiet() -> Kubectl {
    let builder = Sandbox::builder().kubelet(false);
    Kubectl::with(builder.start().await.expect("the sandbox starts"))
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1', b: '2'}\n";

#[tokio::test(flavor = "multi_thread")]
async fn apply_on_the_clients_side_creates_changes_prunes_and_finds_nothing_to_do() {
    let k = quiet().await;
    assert_eq!(k.ok_with("apply -f -", MAP).await, "configmap/m created\n");
    assert_eq!(k.ok_with("apply -f -", MAP).await, "configmap/m unchanged\n");
    let without_b = MAP.replace(", b: '2'", "");
    assert_eq!(k.ok_with("apply -f -", &without_b).await, "configmap/m configured\n");
    assert_eq!(k.ok("get cm m -o jsonpath={.data}").await, r#"{"a":"1"}"#);
    let wrong = MAP.replace("\ndata:", "\ndota:");
    let output = k.output(k.command("apply -f -"), &wrong).await;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains(r#"unknown field "dota""#),
        "{message}"
    );
    let diff = k.output(k.command("diff -f -"), MAP).await;
    assert_eq!(diff.status.code(), Some(1), "diff reports a change by its exit code");
    assert!(String::from_utf8_lossy(&diff.stdout).contains("+  b: \"2\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_applied_as_its_items_and_each_is_judged() {
    let k = quiet().await;
    let items = ["l1", "l2"].map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}));
    let mut list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let applied = k.ok_with("apply -f -", &list.to_string()).await;
    assert_eq!(applied, "configmap/l1 created\nconfigmap/l2 created\n");
    list["items"][1]["dota"] = json!({});
    let output = k.output(k.command("apply -f -"), &list.to_string()).await;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains(r#"unknown field "dota""#),
        "{message}"
    );
    assert_eq!(k.ok("get cm l1 l2 -o name").await, "configmap/l1\nconfigmap/l2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_side_apply_conflict_names_the_owner_of_the_field() {
    let k = quiet().await;
    let applied = k.ok_with("apply --server-side --field-manager=one -f -", MAP).await;
    assert_eq!(applied, "configmap/m serverside-applied\n");
    let other = MAP.replace("'1'", "'3'");
    let args = "apply --server-side --field-manager=two -f -";
    let output = k.output(k.command(args), &other).await;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains(r#"conflict with "one": .data.a"#),
        "{message}"
    );
    k.ok_with("apply --server-side --field-manager=two --force-conflicts -f -", &other)
        .await;
    let managers = k
        .ok("get cm m --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}")
        .await;
    assert_eq!(managers, "one two");
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_tables_yaml_paths_and_in_order() {
    let k = quiet().await;
    for (name, image) in [("a", "z:1"), ("b", "y:1"), ("c", "x:1")] {
        let text = deployment(name, 0).replace("image: busybox", &format!("image: {image}"));
        k.ok_with("apply -f -", &text).await;
    }
    let table = k.ok("get deployments").await;
    let head: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    let wide = k.ok("get deployments -o wide").await;
    assert!(
        wide.contains("CONTAINERS") && wide.contains("main") && wide.contains("app=a"),
        "{wide}"
    );
    let yaml = k.ok("get deployment a -o yaml").await;
    assert!(
        yaml.starts_with("apiVersion: apps/v1\nkind: Deployment\n") && yaml.contains("image: z:1"),
        "{yaml}"
    );
    let by_image = k
        .ok("get deployments --sort-by={.spec.template.spec.containers[0].image} -o name")
        .await;
    assert_eq!(by_image, "deployment.apps/c\ndeployment.apps/b\ndeployment.apps/a\n");
    let sorted = k.ok("get deployments --sort-by=.metadata.name").await;
    assert_eq!(sorted.lines().count(), 4, "{sorted}");
    let path = k
        .ok(r"get deployments -o jsonpath={range.items[*]}{.metadata.name},{end}")
        .await;
    assert_eq!(path, "a,b,c,");
    assert_eq!(k.ok("get deployments -l app=b -o name").await, "deployment.apps/b\n");
    assert_eq!(
        k.ok("get deployments --field-selector=metadata.name=c -o name").await,
        "deployment.apps/c\n"
    );
    assert!(k.ok("get all").await.contains("deployment.apps/a"));
    let chunks = k.ok("get deployments --chunk-size=1 -o name").await;
    assert_eq!(chunks.lines().count(), 3);
    assert!(
        k.rejected("get deployment missing")
            .await
            .contains(r#"deployments.apps "missing" not found"#)
    );
    assert!(
        k.rejected("get nothings")
            .await
            .contains(r#"the server doesn't have a resource type "nothings""#)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_shows_objects_and_their_events() {
    let k = quiet().await;
    k.ok_with("apply -f -", &deployment("d", 2)).await;
    let output = k
        .until("describe deployment d", |output| output.contains("ScalingReplicaSet"))
        .await;
    for expected in [
        "Replicas:",
        "2 desired",
        "StrategyType:",
        "RollingUpdate",
        "Scaled up replica set d-",
    ] {
        assert!(output.contains(expected), "{expected} in\n{output}");
    }
    let pod = k.until("get pods -o name", |output| output.lines().count() == 2).await;
    let pod = pod.lines().next().unwrap_or_default();
    let output = k
        .until(&format!("describe {pod}"), |output| output.contains("FailedScheduling"))
        .await;
    assert!(output.contains("no nodes available to schedule pods"), "{output}");
    assert!(k.ok("describe namespace default").await.contains("Active"));
    assert!(k.ok("describe service kubernetes").await.contains("443"));
    let events = k.ok("events").await;
    assert!(
        events.contains("ScalingReplicaSet") && events.contains("LAST SEEN"),
        "{events}"
    );
    assert!(k.ok("events --for deployment/d").await.contains("ScalingReplicaSet"));
    assert!(
        k.ok("get events --sort-by=.lastTimestamp")
            .await
            .contains("FailedScheduling")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_by_a_script_changes_the_object() {
    let k = quiet().await;
    k.ok_with("apply -f -", MAP).await;
    let folder = tempfile::tempdir().expect("a folder");
    let editor = folder.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nsed -i 's/a: \"1\"/a: \"edited\"/' \"$1\"\n").expect("the script is written");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).expect("it may run");
    let mut command = k.command("edit cm m");
    command.env("KUBE_EDITOR", &editor);
    assert_eq!(
        Kubectl::checked("edit", &k.output(command, "").await),
        "configmap/m edited\n"
    );
    assert_eq!(k.ok("get cm m -o jsonpath={.data.a}").await, "edited");
}

#[tokio::test(flavor = "multi_thread")]
async fn patch_label_annotate_replace_and_set_change_objects() {
    let k = quiet().await;
    k.ok_with("apply -f -", &deployment("d", 0)).await;
    k.ok_of(&[
        "patch",
        "deployment",
        "d",
        "-p",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"p:1"}]}}}}"#,
    ])
    .await;
    k.ok_of(&[
        "patch",
        "deployment",
        "d",
        "--type=json",
        "-p",
        r#"[{"op":"replace","path":"/spec/replicas","value":1}]"#,
    ])
    .await;
    k.ok_of(&[
        "patch",
        "deployment",
        "d",
        "--type=merge",
        "-p",
        r#"{"metadata":{"labels":{"x":"y"}}}"#,
    ])
    .await;
    k.ok_of(&[
        "patch",
        "deployment",
        "d",
        "--subresource=scale",
        "--type=merge",
        "-p",
        r#"{"spec":{"replicas":2}}"#,
    ])
    .await;
    let path =
        "get deployment d -o jsonpath={.spec.replicas},{.metadata.labels.x},{.spec.template.spec.containers[0].image}";
    assert_eq!(k.ok(path).await, "2,y,p:1");
    k.ok("label deployment d x=z --overwrite").await;
    k.ok("annotate deployment d note=here").await;
    k.ok("set image deployment/d main=s:2").await;
    k.ok("scale deployment d --replicas=0").await;
    let path = "get deployment d -o jsonpath={.spec.replicas},{.metadata.labels.x},{.metadata.annotations.note}";
    assert_eq!(k.ok(path).await, "0,z,here");
    k.ok_with("create -f -", MAP).await;
    k.ok_with("replace -f -", &MAP.replace("'1'", "'9'")).await;
    assert_eq!(k.ok("get cm m -o jsonpath={.data.a}").await, "9");
    k.ok("create secret generic s --from-literal=k=v").await;
    assert_eq!(k.ok("get secret s -o jsonpath={.data.k}").await, "dg==");
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_with_each_cascade() {
    let k = quiet().await;
    for cascade in ["background", "foreground", "orphan"] {
        k.ok_with("apply -f -", &deployment(cascade, 1)).await;
        let select = format!("get replicasets -l app={cascade} -o name");
        k.until(&select, |output| output.lines().count() == 1).await;
        let pods = format!("get pods -l app={cascade} -o name");
        k.until(&pods, |output| output.lines().count() == 1).await;
        k.ok(&format!(
            "delete deployment {cascade} --cascade={cascade} --timeout=60s"
        ))
        .await;
        assert!(
            k.rejected(&format!("get deployment {cascade}"))
                .await
                .contains("not found")
        );
        if cascade == "orphan" {
            assert_eq!(k.ok(&select).await.lines().count(), 1, "its replica set stays");
        } else {
            k.until(&select, str::is_empty).await;
            k.until(&pods, str::is_empty).await;
        }
    }
    k.ok("delete replicasets --all").await;
    k.until("get pods -o name", str::is_empty).await;
    k.ok("create namespace gone").await;
    k.ok_with("apply -n gone -f -", MAP).await;
    k.ok("delete namespace gone --timeout=60s").await;
    assert!(k.rejected("get namespace gone").await.contains("not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_api_resources_and_version_work() {
    let k = quiet().await;
    let output = k.ok("explain pod.spec.containers.image").await;
    assert!(
        output.contains("KIND:") && output.contains("FIELD: image <string>"),
        "{output}"
    );
    assert!(k.ok("explain deployment --recursive").await.contains("replicas"));
    let resources = k.ok("api-resources").await;
    for expected in [
        "pods",
        "po",
        "deployments",
        "apps/v1",
        "customresourcedefinitions",
        "crd,crds",
        "leases",
    ] {
        assert!(resources.contains(expected), "{expected} in\n{resources}");
    }
    assert!(
        k.ok("api-resources --namespaced=false -o name")
            .await
            .contains("nodes\n")
    );
    assert!(k.ok("api-versions").await.contains("apps/v1\n"));
    assert!(k.ok("version").await.contains("Server Version: v1.34"));
    assert!(k.ok("cluster-info").await.contains("is running at"));
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_explained_listed_and_validated() {
    let k = quiet().await;
    let definition = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
      schema:
        openAPIV3Schema:
          type: object
          description: A gadget for tests.
          properties:
            spec:
              type: object
              properties:
                size: {type: integer, minimum: 1, description: How large it is.}
              x-kubernetes-validations:
                - {rule: "self.size < 10", message: "size must stay below 10"}
"#;
    k.ok_with("apply -f -", definition).await;
    k.ok("wait crd/gadgets.example.dev --for=condition=Established --timeout=20s")
        .await;
    let gadget = "apiVersion: example.dev/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: 3}\n";
    k.ok_with("apply -f -", gadget).await;
    let table = k.ok("get gd").await;
    assert!(table.starts_with("NAME   SIZE"), "{table}");
    assert!(k.ok("explain gadget.spec.size").await.contains("How large it is."));
    let output = k.output(k.command("apply -f -"), &gadget.replace('3', "12")).await;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("size must stay below 10"), "{message}");
    assert!(k.ok("describe gadget g").await.contains("Size:"));
    k.ok("delete crd gadgets.example.dev --timeout=30s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn auth_can_i_follows_the_roles() {
    let k = quiet().await;
    assert_eq!(k.ok("auth can-i create pods").await, "yes\n");
    k.ok("create serviceaccount reader").await;
    k.ok("create role reader --verb=get,list --resource=pods").await;
    k.ok("create rolebinding reader --role=reader --serviceaccount=default:reader")
        .await;
    let who = "--as=system:serviceaccount:default:reader";
    assert_eq!(k.ok(&format!("auth can-i list pods {who}")).await, "yes\n");
    let output = k.output(k.command(&format!("auth can-i delete pods {who}")), "").await;
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), b"no\n".as_slice())
    );
    assert!(k.ok(&format!("auth can-i --list {who}")).await.contains("pods"));
    assert!(
        k.rejected(&format!("get secrets {who}"))
            .await
            .contains("cannot list resource \"secrets\"")
    );
    assert!(k.ok("auth whoami").await.contains("admin"));
    assert!(k.ok("create token reader").await.starts_with("ey"));
}
