//! A cluster of every server version, built from its objects alone. Probes report the actual state, the operator's
//! users have exactly the permissions that they need, SIGTERM starts a planned failover, and volumes restore the data.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::world::{
    Made, answering, at, client, eventually, form, message, operator, passwords, pod, pods, sandbox, user,
};
use candor_operator::objects;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube_sandbox::Sandbox;
use redis::cmd;
use serde_json::json;
use valkey_admin::role::Role;

const IMAGES: [&str; 3] = ["valkey/valkey:9.1", "valkey/valkey:8.0", "redis:7.0"];

async fn ready(sandbox: &Sandbox, name: &str) -> bool {
    let pod: Pod = pods(sandbox).get(name).await.unwrap();
    let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn restarts(sandbox: &Sandbox) -> i32 {
    let all = pods(sandbox).list(&kube::api::ListParams::default()).await.unwrap();
    let statuses = all.items.into_iter().filter_map(|pod| pod.status?.container_statuses);
    statuses.flatten().map(|status| status.restart_count).sum()
}

async fn put(ips: &BTreeMap<candor_engine::model::MemberRef, IpAddr>, keys: u32) -> u32 {
    let mut put = 0;
    for number in 0..keys {
        for ip in ips.values() {
            let said = client(*ip).order(cmd("SET").arg(format!("k{number}")).arg("v")).await;
            put += u32::from(said.is_ok());
        }
    }
    put
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_every_generation_runs_on_its_objects_alone() {
    for image in IMAGES {
        let sandbox = sandbox().await;
        let made = Made::of(json!({"shards": 3, "replicas": 1, "image": image, "exporter": {"enabled": false}}));
        let begun = Instant::now();
        made.create(&sandbox).await;
        let ips = answering(&sandbox, &made).await;
        println!("{image}: 6 members answer after {:?}", begun.elapsed());
        for member in made.members() {
            let (name, _) = pod(&sandbox, member).await.unwrap();
            assert!(!ready(&sandbox, &name).await, "{member} is ready before it has joined");
        }
        form(&made, &ips).await;
        println!("{image}: formed after {:?}", begun.elapsed());
        for member in made.members() {
            let (name, _) = pod(&sandbox, member).await.unwrap();
            eventually("joined members get ready", 20, async || ready(&sandbox, &name).await).await;
        }
        permissions(ips[&at(0, 0)]).await;
        assert_eq!(put(&ips, 50).await, 50, "every key has exactly one owner");
        assert_eq!(restarts(&sandbox).await, 0, "{}", message(&sandbox).await);

        // A replica that has permanently lost its primary is not ready.
        let replica = ips[&at(1, 1)];
        let (name, _) = pod(&sandbox, at(1, 1)).await.unwrap();
        operator(replica).config_set(&[("masterauth", "wrong")]).await.unwrap();
        operator(ips[&at(1, 0)])
            .order(cmd("CLIENT").arg("KILL").arg("TYPE").arg("replica"))
            .await
            .unwrap();
        eventually("a replica without its primary is not ready", 20, async || {
            !ready(&sandbox, &name).await
        })
        .await;
    }
}

/// Checks the permissions of the operator's user, and commands that none of the system users may run.
async fn permissions(ip: IpAddr) {
    let node = operator(ip);
    node.cluster_nodes().await.unwrap();
    node.cluster_info().await.unwrap();
    node.info(&["server", "replication"]).await.unwrap();
    node.role().await.unwrap();
    node.acl_list().await.unwrap();
    node.acl_set_user("somebody", &["on".to_owned(), "nopass".to_owned(), "+ping".to_owned()])
        .await
        .unwrap();
    node.acl_delete_users(&["somebody"]).await.unwrap();
    assert_eq!(
        node.config_get("cluster-node-timeout").await.unwrap().as_deref(),
        Some("5000")
    );
    node.config_set(&[("cluster-node-timeout", "5001")]).await.unwrap();
    node.config_set(&[("cluster-node-timeout", "5000")]).await.unwrap();
    let keys = [
        vec!["GET", "a"],
        vec!["SET", "a", "b"],
        vec!["DEL", "a"],
        vec!["FLUSHALL"],
        vec!["FLUSHDB"],
        vec!["KEYS", "*"],
        vec!["SCAN", "0"],
        vec!["RANDOMKEY"],
        vec!["EVAL", "return 1", "0"],
        vec!["DUMP", "a"],
        vec!["MONITOR"],
        vec!["MODULE", "LIST"],
        vec!["SHUTDOWN"],
        vec!["PUBLISH", "a", "b"],
    ];
    let exporter = user(ip, objects::EXPORTER, &passwords().exporter);
    exporter.info(&["all"]).await.unwrap();
    exporter.cluster_info().await.unwrap();
    assert!(
        exporter.config_set(&[("hz", "11")]).await.is_err(),
        "figures are read, nothing is set"
    );
    for message in keys {
        for who in [&node, &exporter] {
            let rejected = who
                .order(cmd(message[0]).arg(&message[1..]))
                .await
                .unwrap_err()
                .to_string();
            assert!(rejected.contains("NOPERM"), "{message:?}: {rejected}");
        }
    }
    let wrong = user(ip, objects::OPERATOR, "something else").ping().await.unwrap_err();
    assert!(
        matches!(wrong, valkey_admin::client::NodeError::Credentials(..)),
        "{wrong}"
    );
    assert!(
        user(ip, objects::MIGRATOR, &passwords().migrator).ping().await.is_err(),
        "nobody needs it here"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_fails_over_the_shard_if_the_server_supports_it() {
    let sandbox = sandbox().await;
    let made = Made::of(json!({"shards": 3, "replicas": 1, "exporter": {"enabled": false}}));
    made.create(&sandbox).await;
    let ips = answering(&sandbox, &made).await;
    form(&made, &ips).await;
    let (primary, replica) = (operator(ips[&at(0, 0)]), operator(ips[&at(0, 1)]));
    // A server starts a planned failover only to a replica that has acknowledged the whole replication stream.
    eventually("the replica has acknowledged everything", 20, async || {
        let Ok(Role::Primary { offset, followers }) = primary.role().await else {
            return false;
        };
        !followers.is_empty() && followers.iter().all(|follower| follower.offset == offset)
    })
    .await;
    let (name, _) = pod(&sandbox, at(0, 0)).await.unwrap();
    let begun = Instant::now();
    pods(&sandbox).delete(&name, &DeleteParams::default()).await.unwrap();
    let primary = async || {
        replica
            .info(&["replication"])
            .await
            .is_ok_and(|info| info.upstream.is_none())
    };
    eventually("the replica is the primary", 20, primary).await;
    let took = begun.elapsed();
    println!("handed over {took:?} after the pod's deletion");
    // The node timeout is 5 s: an election without the planned failover would take longer.
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_a_volume_finds_its_data_and_its_id_again() {
    let sandbox = sandbox().await;
    let made = Made::of(json!({
        "shards": 1, "persistence": {"size": "1Gi"}, "exporter": {"enabled": false},
    }));
    made.create(&sandbox).await;
    let ips = answering(&sandbox, &made).await;
    form(&made, &ips).await;
    let id = operator(ips[&at(0, 0)]).my_id().await.unwrap();
    assert_eq!(put(&ips, 20).await, 20);
    let (name, _) = pod(&sandbox, at(0, 0)).await.unwrap();
    let uid = pods(&sandbox).get(&name).await.unwrap().uid();
    pods(&sandbox).delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("the pod is another one", 30, async || {
        pods(&sandbox)
            .get_opt(&name)
            .await
            .unwrap()
            .is_some_and(|pod| pod.uid() != uid)
    })
    .await;
    let ips = answering(&sandbox, &made).await;
    let node = operator(ips[&at(0, 0)]);
    assert_eq!(node.my_id().await.unwrap(), id);
    eventually("its keys are there", 10, async || {
        node.info(&["keyspace"]).await.is_ok_and(|info| info.keys == 20)
    })
    .await;
}

/// A CA and a certificate without an IP address, in the format of a Secret.
fn certificates() -> [(&'static str, String); 3] {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    // A certificate with its issuer's name would be taken for self-signed.
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "an authority");
    let issuer = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(vec!["valkey.example".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    [
        ("ca.crt", issuer.pem()),
        ("tls.crt", leaf.pem()),
        ("tls.key", key.serialize_pem()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_everything_is_encrypted_and_nothing_else_is_served() {
    for image in [IMAGES[0], IMAGES[2]] {
        let sandbox = sandbox().await;
        let files = certificates();
        let [authority, certificate, key] = files.each_ref().map(|(_, text)| text.as_bytes());
        let mut made = Made::of(json!({
            "shards": 2, "replicas": 1, "image": image, "exporter": {"enabled": false},
            "networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}},
        }))
        .secret("t", &json!(files.iter().cloned().collect::<BTreeMap<_, _>>()));
        made.tls = Some(valkey_admin::client::Tls::new(authority, certificate, key, &[]).unwrap());
        made.create(&sandbox).await;
        let ips = answering(&sandbox, &made).await;
        form(&made, &ips).await;
        for (member, ip) in &ips {
            let (name, _) = pod(&sandbox, *member).await.unwrap();
            eventually("members get ready over TLS", 30, async || ready(&sandbox, &name).await).await;
            assert!(operator(*ip).ping().await.is_err(), "plain text is not understood");
            eventually("the bus is linked over TLS", 30, async || {
                let links = made.operator(*ip).cluster_nodes().await.unwrap();
                links.0.iter().all(|node| node.linked)
            })
            .await;
        }
        assert_eq!(restarts(&sandbox).await, 0, "{}", message(&sandbox).await);
    }
}
