//! Members by their names: addresses and node ids in a text are replaced by `0-1 (10.0.0.1)`. The events of
//! `ValkeyCluster` name addresses and ids because other tools expect their wording. Pure.

use super::{Cluster, Member, MemberId};

/// As much of a node id as identifies it.
const ID: usize = 8;
/// A node id of Valkey and Redis.
const WHOLE_ID: usize = 40;
/// Words that already say that a member follows.
const NOUNS: [&str; 5] = ["node", "Node", "member", "primary", "replica"];

/// Addresses and node ids of members.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<(String, String, String)>);

impl Names {
    /// The names of a cluster's members.
    pub fn of(cluster: &Cluster) -> Self {
        let known = |one: &Member| {
            let name = match one.id {
                MemberId::Place(place) => place.to_string(),
                MemberId::Ordinal(_) => one.pod.clone(),
            };
            let short: String = one.node_id.chars().take(ID).collect();
            let id = (one.node_id.len() == WHOLE_ID).then(|| (one.node_id.clone(), name.clone(), short));
            let address = (!one.ip.is_empty()).then(|| (one.ip.clone(), name, one.ip.clone()));
            [id, address]
                .into_iter()
                .flatten()
                .filter(|(_, name, _)| !name.is_empty())
        };
        Self(cluster.members.iter().flat_map(known).collect())
    }

    /// The text with members by their names. What stands in parentheses already follows a name.
    pub fn apply(&self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        let mut out = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find(is_part) {
            let (before, from) = rest.split_at(begin);
            let (token, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
            out += before;
            let word = token.trim_end_matches('.');
            match self.0.iter().find(|(known, ..)| known == word) {
                Some((_, name, shown)) if !out.ends_with('(') => {
                    let noun = out.trim_end().rsplit(' ').next().unwrap_or_default();
                    if !NOUNS.contains(&noun) {
                        out += "member ";
                    }
                    out.extend([name, " (", shown, ")", &token[word.len()..]]);
                }
                _ => out += token,
            }
            rest = after;
        }
        out + rest
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::status::{fixtures, redkey_fixtures};

    use super::*;

    #[test]
    fn addresses_and_ids_become_names_once() {
        let names = Names::of(&fixtures::healthy().cluster());
        let id = format!("{:0<40}", "b1");
        for (text, expected) in [
            (
                "Adding node 10.0.1.0 to cluster",
                "Adding node 1-0 (10.0.1.0) to cluster",
            ),
            (
                "Failed to add node: 10.0.1.0: no answer to CLUSTER MEET in time",
                "Failed to add node: member 1-0 (10.0.1.0): no answer to CLUSTER MEET in time",
            ),
            (
                "10.0.0.1: CLUSTER MIGRATESLOTS: OOM command not allowed",
                "member 0-1 (10.0.0.1): CLUSTER MIGRATESLOTS: OOM command not allowed",
            ),
            (
                "Node 10.0.0.1 met node 10.0.1.0.",
                "Node 0-1 (10.0.0.1) met node 1-0 (10.0.1.0).",
            ),
            (
                "member 1-0 (10.0.1.0) is the primary",
                "member 1-0 (10.0.1.0) is the primary",
            ),
            ("node at 10.0.1.01 or 110.0.1.0", "node at 10.0.1.01 or 110.0.1.0"),
            ("", ""),
            ("größer: 10.0.1.0ü", "größer: member 1-0 (10.0.1.0)ü"),
        ] {
            assert_eq!(names.apply(text), expected);
        }
        assert_eq!(
            names.apply(&format!("Created replica for primary {id}")),
            "Created replica for primary 1-1 (b1000000)"
        );
    }

    #[test]
    fn members_of_a_redkey_cluster_are_called_by_their_pods() {
        let snapshot = redkey_fixtures::degraded();
        let cluster = snapshot.cluster();
        let member = cluster.members.iter().find(|one| !one.ip.is_empty()).unwrap();
        let text = Names::of(&cluster).apply(&format!("node {} left", member.ip));
        assert_eq!(text, format!("node {} ({}) left", member.pod, member.ip));
    }
}
