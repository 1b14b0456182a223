//! The text of `GET /metrics`.

use super::super::api::{Check, Node};
use super::super::metrics::{self, Measurement};

const INFO: &str = "# Server\r\nredis_version:8.0.6\r\nuptime_in_seconds:7\r\n# Memory\r\nused_memory:1048576\r\n\
    mem_fragmentation_ratio:1.25\r\n# Clients\r\nconnected_clients:2\r\n# Stats\r\ntotal_commands_processed:10\r\n\
    instantaneous_ops_per_sec:0\r\n# Commandstats\r\ncmdstat_get:calls=3,usec=9,usec_per_call=3.00\r\n\
    # Keyspace\r\ndb0:keys=5,expires=1,avg_ttl=0,subexpiry=0\r\n";

fn measured() -> Measurement {
    Measurement {
        cluster: "c".to_owned(),
        namespace: "ns".to_owned(),
        time: 1_700_000_000.0,
        info: [("c-0".to_owned(), INFO.to_owned())].into(),
        cluster_info: Some(
            "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:3\r\n".to_owned(),
        ),
        nodes: vec![(
            Node {
                id: "a1".to_owned(),
                ip: "10.0.0.1".to_owned(),
                role: "primary".to_owned(),
                ..Node::default()
            },
            "0-16383".to_owned(),
        )],
        check: Some(Check {
            errors: vec!["e".to_owned()],
            warnings: Vec::new(),
        }),
    }
}

#[test]
fn metrics_have_the_names_and_labels_of_the_contract() {
    let text = metrics::text(&measured(), &[]);
    assert_eq!(
        text,
        r#"# TYPE redis_cluster_check_command_output_code gauge
redis_cluster_check_command_output_code{cluster="c",namespace="ns"} 1
# TYPE redis_cluster_check_errors gauge
redis_cluster_check_errors{cluster="c",namespace="ns"} 1
# TYPE redis_cluster_check_warnings gauge
redis_cluster_check_warnings{cluster="c",namespace="ns"} 0
# TYPE redis_cluster_metrics gauge
redis_cluster_metrics{cluster="c",cluster_slots_assigned="16384",cluster_state="ok",namespace="ns"} 1700000000
# TYPE redis_connected_clients gauge
redis_connected_clients{cluster="c",instanceId="c-0",namespace="ns"} 2
# TYPE redis_instantaneous_ops_per_sec gauge
redis_instantaneous_ops_per_sec{cluster="c",instanceId="c-0",namespace="ns"} 0
# TYPE redis_keyspace_avg_ttl gauge
redis_keyspace_avg_ttl{cluster="c",database="db0",instanceId="c-0",namespace="ns"} 0
# TYPE redis_keyspace_expires gauge
redis_keyspace_expires{cluster="c",database="db0",instanceId="c-0",namespace="ns"} 1
# TYPE redis_keyspace_keys gauge
redis_keyspace_keys{cluster="c",database="db0",instanceId="c-0",namespace="ns"} 5
# TYPE redis_nodes_metrics gauge
redis_nodes_metrics{cluster="c",namespace="ns",nodeFailures="0",nodeId="a1",nodeIp="10.0.0.1",primaryId="",role="primary",slots="0-16383"} 1700000000
# TYPE redis_total_commands_processed gauge
redis_total_commands_processed{cluster="c",instanceId="c-0",namespace="ns"} 10
# TYPE redis_used_memory gauge
redis_used_memory{cluster="c",instanceId="c-0",namespace="ns"} 1048576
"#
    );
}

#[test]
fn keys_of_the_spec_decide_what_is_measured_and_a_text_is_a_label() {
    let keys = ["redis_version", "mem_fragmentation_ratio", "cmdstat_get"].map(str::to_owned);
    let text = metrics::text(&measured(), &keys);
    assert!(!text.contains("redis_used_memory"));
    for line in [
        r#"redis_redis_version{cluster="c",instanceId="c-0",namespace="ns",redis_version="8.0.6"} -1"#,
        r#"redis_mem_fragmentation_ratio{cluster="c",instanceId="c-0",namespace="ns"} 1.25"#,
        r#"redis_cmdstat_get_usec_per_call{cluster="c",instanceId="c-0",namespace="ns"} 3"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
}

#[test]
fn no_answer_of_a_server_breaks_the_page() {
    let mut odd = measured();
    let info = "evil key:1\nused_memory:1\"}\nconnected_clients:NaN\ndb0:keys=x\ndbx:keys=1\n=:=\n:\nused_memory\n";
    odd.info.insert("c-1".to_owned(), info.to_owned());
    for line in metrics::text(&odd, &[]).lines().filter(|line| !line.starts_with('#')) {
        let (head, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(head.ends_with('}') && head.starts_with("redis_"), "{line}");
    }
}
