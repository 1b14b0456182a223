//! Credential repair on real servers: only members are repaired, whichever other servers are open.

use std::net::IpAddr;

use candor_engine::memory::{Memory, ShardMemory};
use candor_engine::model::ShardIndex;
use candor_operator::credentials::repair::{Repair, RepairError};
use candor_operator::objects;
use serde_json::json;
use valkey_admin::NodeId;
use valkey_admin::client::Endpoint;

use crate::servers::{GENERATIONS, Place};
use crate::world::{client, eventually, operator, passwords};

fn remembering(id: NodeId) -> Memory {
    let shard = ShardMemory {
        members: [(0, id)].into(),
        ..ShardMemory::default()
    };
    Memory {
        topology: [(ShardIndex(0), shard)].into(),
        ..Memory::default()
    }
}

/// A running server that has a different password for the operator's user.
async fn rejecting(generation: (&'static str, &'static str)) -> Place {
    let mut place = Place::new(generation, &json!({}));
    place.start();
    let node = operator(place.ip);
    eventually("the server responds", 20, async || node.ping().await.is_ok()).await;
    let rules = ["resetpass", ">another"].map(str::to_owned);
    client(place.ip).acl_set_user(objects::OPERATOR, &rules).await.unwrap();
    assert!(operator(place.ip).ping().await.is_err());
    place
}

fn endpoint(ip: IpAddr) -> Endpoint {
    Endpoint::plain(ip, objects::PORT)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_repaired_by_its_node_id_or_by_another_password_and_any_other_server_is_left_alone() {
    for generation in GENERATIONS {
        let place = rejecting(generation).await;
        let id = client(place.ip).my_id().await.unwrap();
        let at = endpoint(place.ip);
        let by_password = Repair::new(&Memory::default(), &passwords());
        let by_id = Repair::with(&remembering(id), [], &passwords().operator);
        let unproven = Repair::with(&Memory::default(), [(objects::EXPORTER, "wrong".to_owned())], "secret");

        let before = client(place.ip).acl_list().await.unwrap();
        assert!(!unproven.is_possible(&at).await, "{generation:?}");
        let rejected = unproven.perform(&at).await;
        assert!(matches!(rejected, Err(RepairError::Unproven(_))), "{rejected:?}");
        assert_eq!(client(place.ip).acl_list().await.unwrap(), before, "{generation:?}");

        for repair in [by_password, by_id] {
            let rules = ["resetpass", ">another"].map(str::to_owned);
            client(place.ip).acl_set_user(objects::OPERATOR, &rules).await.unwrap();
            assert!(repair.is_possible(&at).await, "{generation:?}");
            assert!(
                operator(place.ip).ping().await.is_err(),
                "asking whether it is possible writes nothing"
            );
            repair.perform(&at).await.unwrap();
            operator(place.ip).ping().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_default_user_may_not_set_users_cannot_be_repaired() {
    for generation in GENERATIONS {
        let place = rejecting(generation).await;
        let repair = Repair::new(&Memory::default(), &passwords());
        let rules = ["-acl"].map(str::to_owned);
        client(place.ip).acl_set_user("default", &rules).await.unwrap();
        assert!(!repair.is_possible(&endpoint(place.ip)).await, "{generation:?}");
        assert!(repair.perform(&endpoint(place.ip)).await.is_err());
    }
}
