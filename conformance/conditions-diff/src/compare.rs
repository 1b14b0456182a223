//! When two answers count as equal, and the exceptions, each with its reason.

use serde_json::Value;

/// What came of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Equal, string for string.
    Equal,
    /// Different, for a reason that stands in [`Exception`].
    Excepted(Exception),
    /// Different.
    Different,
}

/// The differences that are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exception {
    /// Go ends a conflict's error with `cmp.Diff`, whose output is random on purpose (its documentation says so); this
    /// side ends it with the fields that differ. The error is compared up to there.
    ConflictDetail,
    /// Go panics on a field of the wrong shape; this side has to answer with an error.
    GoPanics,
    /// A stored status that is none of the three words is mirrored by Go as it is, which no API server stores; here it
    /// becomes Unknown.
    MirrorOfNoStatus,
    /// Go drops list entries that are no objects; here that is an error, because nothing is silently dropped.
    EntryNoObject,
    /// Go reads a list of a wrong shape as no conditions at all; here that is an error.
    ListNoList,
    /// The words for a time that cannot be parsed are those of each language's parser: the error is compared up to them.
    TimeParser,
}

impl Exception {
    /// Every exception, for the report.
    pub const ALL: [Self; 6] = [
        Self::ConflictDetail,
        Self::GoPanics,
        Self::MirrorOfNoStatus,
        Self::EntryNoObject,
        Self::ListNoList,
        Self::TimeParser,
    ];

    /// The reason in a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ConflictDetail => "the text of Go's cmp.Diff at the end of a conflict error is random by design",
            Self::GoPanics => "Go panics on a field of the wrong shape; kube-status answers with an error",
            Self::MirrorOfNoStatus => "a status that is no status is mirrored as Unknown",
            Self::EntryNoObject => "Go drops list entries that are no objects; kube-status answers with an error",
            Self::ListNoList => "Go takes conditions that are no list for none; kube-status answers with an error",
            Self::TimeParser => "the time parser's own words at the end of an error differ",
        }
    }
}

/// Compares the answers to one case.
pub fn verdict(case: &Value, go: &Value, ours: &Value) -> Verdict {
    if go == ours {
        return Verdict::Equal;
    }
    match exception(case, go, ours) {
        Some(exception) => Verdict::Excepted(exception),
        None => Verdict::Different,
    }
}

fn exception(case: &Value, go: &Value, ours: &Value) -> Option<Exception> {
    let error = |answer: &Value| answer["error"].as_str().map(str::to_owned);
    let (go_error, our_error) = (error(go), error(ours));
    if let (Some(theirs), Some(ours)) = (&go_error, &our_error) {
        let conflict = up_to(theirs, " conflict: ");
        if conflict.is_some() && conflict == up_to(ours, " conflict: ") {
            return Some(Exception::ConflictDetail);
        }
        if up_to(theirs, ": parsing time ").is_some_and(|kept| ours.starts_with(kept)) {
            return Some(Exception::TimeParser);
        }
    }
    let untyped = case["op"] == "mirrorUnstructured";
    if untyped && go["panic"].is_string() && our_error.is_some() {
        return Some(Exception::GoPanics);
    }
    if untyped && our_error.is_some() && go_error.is_none() {
        let lists = [
            &case["content"]["status"]["v1beta2"]["conditions"],
            &case["content"]["status"]["conditions"],
        ];
        if lists.iter().any(|list| !list.is_array() && !list.is_null()) {
            return Some(Exception::ListNoList);
        }
        let entries = lists.iter().filter_map(|list| list.as_array()).flatten();
        if entries.into_iter().any(|entry| !entry.is_object()) {
            return Some(Exception::EntryNoObject);
        }
    }
    let mirrored = case["op"] == "mirror" && ours["condition"]["status"] == "Unknown";
    let no_status = !matches!(go["condition"]["status"].as_str(), Some("True" | "False" | "Unknown"));
    let mut forgiven = go.clone();
    forgiven["condition"]["status"] = "Unknown".into();
    (mirrored && no_status && forgiven == *ours).then_some(Exception::MirrorOfNoStatus)
}

/// The text up to and with the last word of a mark, without what follows.
fn up_to<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let at = text.find(mark)?;
    Some(&text[..at + mark.trim_end_matches([' ', ':']).len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_conflict_is_compared_up_to_the_random_text() {
        let case = json!({"op": "patch"});
        let go = json!({"error": "The condition \"A\" caused a merge/AddCondition conflict: -x +y"});
        let same = json!({"error": "The condition \"A\" caused a merge/AddCondition conflict: reason differs"});
        let other = json!({"error": "The condition \"B\" caused a merge/AddCondition conflict: reason differs"});
        assert_eq!(verdict(&case, &go, &same), Verdict::Excepted(Exception::ConflictDetail));
        assert_eq!(verdict(&case, &go, &other), Verdict::Different);
    }

    #[test]
    fn a_panic_of_go_is_excepted_only_where_this_side_answers_with_an_error() {
        let case = json!({"op": "mirrorUnstructured"});
        let go = json!({"panic": "interface conversion"});
        assert_eq!(
            verdict(&case, &go, &json!({"error": "type is a number"})),
            Verdict::Excepted(Exception::GoPanics)
        );
        assert_eq!(verdict(&case, &go, &json!({"condition": {}})), Verdict::Different);
    }

    #[test]
    fn one_letter_makes_a_difference() {
        let (go, ours) = (
            json!({"condition": {"message": "a"}}),
            json!({"condition": {"message": "b"}}),
        );
        assert_eq!(verdict(&json!({"op": "summary"}), &go, &ours), Verdict::Different);
    }
}
