use super::{InfoFields, Page};

const REPLICA: &str = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\nserver_mode:cluster\r\nos:Linux\r\n\
    used_memory:1024\r\nmem_fragmentation_ratio:1.50\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n\
    master_link_status:down\r\nmaster_sync_in_progress:1\r\nlatest_fork_usec:1500\r\n\
    cmdstat_get:calls=3,usec=1500,usec_per_call=1.0,rejected_calls=0,failed_calls=1\r\n\
    latency_percentiles_usec_get:p50=1.003,p99.9=8.031\r\nserver_time_usec:1794801516690762\r\nuptime_in_seconds:16\r\n\
    slave_repl_offset:7\r\nslave_read_only:1\r\nerrorstat_WRONG\"PASS:count=2\r\ndb0:keys=5,expires=1,avg_ttl=2500\r\n";
const PRIMARY: &str = "role:master\r\nconnected_slaves:1\r\n\
    slave0:ip=10.0.0.2,port=6379,state=online,offset=99,lag=1,type=replica\r\nslave_expires_tracked_keys:0\r\n";
const CLUSTER: &str = "cluster_state:fail\r\ncluster_slots_assigned:16384\r\ncluster_known_nodes:6\r\n";

fn lines(answers: &[&str]) -> Vec<String> {
    Page::of(&InfoFields::read(answers))
        .text()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_a_server_tells_stands_under_the_names_that_dashboards_know() {
    let page = lines(&[REPLICA, CLUSTER]);
    let table = [
        "redis_memory_used_bytes 1024",
        "redis_mem_fragmentation_ratio 1.5",
        "redis_cluster_state 0",
        "redis_cluster_slots_assigned 16384",
        "redis_cluster_known_nodes 6",
        "redis_master_link_up{master_host=\"10.0.0.1\",master_port=\"6379\"} 0",
        "redis_master_sync_in_progress{master_host=\"10.0.0.1\",master_port=\"6379\"} 1",
        "redis_slave_repl_offset{master_host=\"10.0.0.1\",master_port=\"6379\"} 7",
        "redis_slave_info{master_host=\"10.0.0.1\",master_port=\"6379\",read_only=\"1\"} 1",
        "redis_start_time_seconds 1794801500",
        "redis_latency_percentiles_usec{cmd=\"get\",quantile=\"99.9\"} 8.031",
        "redis_latency_percentiles_usec_sum{cmd=\"get\"} 1500",
        "redis_latency_percentiles_usec_count{cmd=\"get\"} 3",
        "redis_latest_fork_seconds 0.0015",
        "redis_commands_total{cmd=\"get\"} 3",
        "redis_commands_duration_seconds_total{cmd=\"get\"} 0.0015",
        "redis_commands_failed_calls_total{cmd=\"get\"} 1",
        "redis_errors_total{err=\"WRONG\\\"PASS\"} 2",
        "redis_db_keys{db=\"db0\"} 5",
        "redis_db_keys_expiring{db=\"db0\"} 1",
        "redis_db_avg_ttl_seconds{db=\"db0\"} 2.5",
    ];
    for line in table {
        assert!(page.iter().any(|have| have == line), "{line} in {page:#?}");
    }
    let info = page
        .iter()
        .find(|line| line.starts_with("redis_instance_info{"))
        .unwrap();
    assert!(
        info.contains("role=\"slave\",redis_version=\"9.1.2\",redis_mode=\"cluster\""),
        "{info}"
    );
}

#[test]
fn a_primary_tells_of_its_replicas() {
    let page = lines(&[PRIMARY]);
    let labels = "{slave_ip=\"10.0.0.2\",slave_port=\"6379\",slave_state=\"online\"}";
    for line in [
        format!("redis_connected_slave_offset_bytes{labels} 99"),
        format!("redis_connected_slave_lag_seconds{labels} 1"),
        "redis_connected_slaves 1".to_owned(),
    ] {
        assert!(page.contains(&line), "{line} in {page:#?}");
    }
}

#[test]
fn every_metric_has_one_help_and_one_type_and_stands_in_one_place() {
    let page = lines(&[REPLICA, PRIMARY, CLUSTER]);
    let mut seen = std::collections::BTreeSet::new();
    let (mut helped, mut current) = (String::new(), String::new());
    for line in page {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(help.len() > 5 && help.ends_with('.'), "{line}");
            name.clone_into(&mut helped);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            current = rest.split(' ').next().unwrap().to_owned();
            assert_eq!(current, helped, "the help comes first");
            assert!(seen.insert(current.clone()), "{current} twice");
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let name = ["_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(name);
            assert_eq!(name, current);
        }
    }
}

#[test]
fn the_help_names_the_line_and_the_command_that_it_comes_from() {
    let page = lines(&[REPLICA, CLUSTER]);
    for line in [
        "# HELP redis_memory_used_bytes used_memory of INFO.",
        "# HELP redis_cluster_state cluster_state of CLUSTER INFO.",
        "# HELP redis_master_link_up master_link_status of INFO, at a replica.",
    ] {
        assert!(page.iter().any(|have| have == line), "{line} in {page:#?}");
    }
}

#[test]
fn nonsense_is_left_out() {
    let page = lines(&["used_memory:many\r\n:\r\nno colon\r\ndb0\r\ndbx:keys=1\r\ncmdstat_:calls=x\r\nslave0:\r\n"]);
    assert!(
        page.iter().all(|line| !line.contains("many") && !line.contains("dbx")),
        "{page:#?}"
    );
}
