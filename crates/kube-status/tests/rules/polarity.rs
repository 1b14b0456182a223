//! Which status is good, how much a status matters, and constructors that cannot say it wrong.

use kube_status::merge::Priority;
use kube_status::severity::{self, Severity};
use kube_status::{Draft, Negative, Polarity, Status};

#[test]
fn issues_come_before_unknowns_and_unknowns_before_good_news() {
    let table = [
        (Status::False, Polarity::Positive, Priority::Issue),
        (Status::True, Polarity::Negative, Priority::Issue),
        (Status::Unknown, Polarity::Positive, Priority::Unknown),
        (Status::Unknown, Polarity::Negative, Priority::Unknown),
        (Status::True, Polarity::Positive, Priority::Info),
        (Status::False, Polarity::Negative, Priority::Info),
    ];
    for (status, polarity, priority) in table {
        assert_eq!(Priority::of(status, polarity), priority, "{status} {polarity:?}");
    }
    assert!(Priority::Issue < Priority::Unknown && Priority::Unknown < Priority::Info);
}

#[test]
fn an_invalid_status_counts_as_unknown() {
    assert_eq!(Status::read("Maybe"), Status::Unknown);
    assert_eq!(Status::read(""), Status::Unknown);
    assert_eq!(Status::read("true"), Status::Unknown);
}

#[test]
fn good_and_bad_follow_the_polarity() {
    assert_eq!(Draft::good("Ready", "R").status, Status::True);
    assert_eq!(Draft::bad("Ready", "R").status, Status::False);
    assert_eq!(Draft::good(Negative("Degraded"), "R").status, Status::False);
    assert_eq!(Draft::bad(Negative("Degraded"), "R").status, Status::True);
    assert_eq!(Draft::unknown(Negative("Degraded"), "R").status, Status::Unknown);
}

#[test]
fn a_severity_is_there_exactly_when_something_is_wrong() {
    let bad = |type_: Negative<&'static str>| severity::Draft::bad(type_, Severity::Error, "R", "");
    assert_eq!(bad(Negative("Degraded")).status(), Status::True);
    assert_eq!(bad(Negative("Degraded")).severity(), Some(Severity::Error));
    let positive = severity::Draft::bad("Ready", Severity::Info, "R", "");
    assert_eq!(
        (positive.status(), positive.severity()),
        (Status::False, Some(Severity::Info))
    );
    for draft in [
        severity::Draft::good("Ready"),
        severity::Draft::good(Negative("Degraded")),
        severity::Draft::unknown("Ready", "R", ""),
    ] {
        assert_eq!(draft.severity(), None);
    }
}
