//! The contract of every scenario, checked by its audit.

use std::time::Duration;

use candor_audit::{Audit, Auditor};

use crate::Cluster;

/// Ends an audit: prints its figures and checks what every scenario promises, namely that status never said Ready
/// beyond the contract's deadlines. Only what the auditor could not notice is excused.
pub async fn assert_met(cluster: &Cluster<'_>, auditor: Auditor) -> Audit {
    let audit = auditor.finish().await;
    println!("{audit}");
    assert!(
        audit.truth.beyond_unobserved(audit.unobserved).is_zero(),
        "{}: Ready beyond the deadlines\n{}",
        cluster.name(),
        details(&audit)
    );
    assert_eq!(
        audit.writes.unread_slots,
        0,
        "slots could not be read back\n{}",
        details(&audit)
    );
    audit
}

/// As [`assert_met`], for intended changes: no acknowledged write may be lost, and no slot may be out for long.
pub async fn planned(cluster: &Cluster<'_>, auditor: Auditor, most: Duration) -> Audit {
    let audit = assert_met(cluster, auditor).await;
    assert_eq!(
        audit.writes.lost,
        0,
        "acknowledged writes are gone\n{}",
        details(&audit)
    );
    brief(&audit, most);
    audit
}

/// Checks that no slot was out for longer; stalls of the host itself do not count.
pub fn brief(audit: &Audit, most: Duration) {
    let outage = audit.longest_outage();
    assert!(
        outage <= most + audit.stalled,
        "a slot was out for {outage:?}, {most:?} is allowed\n{}",
        details(audit)
    );
}

/// The figures and the list of changes.
pub fn details(audit: &Audit) -> String {
    let story = audit
        .truth
        .story
        .iter()
        .map(|change| format!("{:>12}  {}\n", change.at.to_string(), change.text));
    format!("{audit}{}", story.collect::<String>())
}
