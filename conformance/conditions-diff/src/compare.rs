//! When two answers count as equal, and the exceptions, each with its reason.

use serde_json::Value;

/// The result of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
    /// Go ends a conflict's error with `cmp.Diff`, which has random output by design (says its documentation); this side
    /// ends it with the fields that differ. The error is compared up to there.
    ConflictDetail,
    /// A stored status that is none of the three is mirrored by Go as it is, which no API server stores; here it becomes
    /// Unknown.
    MirrorOfNoStatus,
    /// Both reject an untyped object; the message here names the object and the field.
    UntypedMessage,
    /// Go panics on a field of a wrong shape. Here that is an error, except that null is as good as absent.
    GoPanics,
    /// Go ignores what is not a list, not a condition, a second condition of one type, or the text "null" for a time; here
    /// that is an error, because nothing is silently dropped.
    SilentlyDropped,
}

impl Exception {
    /// Every exception, for the report.
    pub const ALL: [Self; 5] = [
        Self::ConflictDetail,
        Self::MirrorOfNoStatus,
        Self::UntypedMessage,
        Self::GoPanics,
        Self::SilentlyDropped,
    ];

    /// The reason in a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ConflictDetail => "the text of Go's cmp.Diff at the end of a conflict error is random by design",
            Self::MirrorOfNoStatus => "a status that is no status is mirrored as Unknown",
            Self::UntypedMessage => "both reject an untyped object, here with its name and the field",
            Self::GoPanics => "Go panics on a field of the wrong shape; here an error, or null taken as absent",
            Self::SilentlyDropped => "Go silently drops a wrong shape, a duplicate or a time; here an error",
        }
    }
}

/// Compares the answers to one case.
pub fn compare(case: &Value, go: &Value, ours: &Value) -> Outcome {
    if go == ours {
        return Outcome::Equal;
    }
    match exception(case, go, ours) {
        Some(exception) => Outcome::Excepted(exception),
        None => Outcome::Different,
    }
}

fn exception(case: &Value, go: &Value, ours: &Value) -> Option<Exception> {
    let rejected = |answer: &Value| answer["error"].is_string();
    match case["op"].as_str()? {
        "patch" | "patch1" => {
            let up_to_detail = |answer: &Value| answer["error"].as_str().and_then(up_to_detail).map(str::to_owned);
            let conflict = up_to_detail(go);
            (conflict.is_some() && conflict == up_to_detail(ours)).then_some(Exception::ConflictDetail)
        }
        "mirror" => {
            let no_status = !matches!(go["condition"]["status"].as_str(), Some("True" | "False" | "Unknown"));
            let mut forgiven = go.clone();
            forgiven["condition"]["status"] = "Unknown".into();
            (no_status && forgiven == *ours).then_some(Exception::MirrorOfNoStatus)
        }
        "mirrorUnstructured" if go["panic"].is_string() => {
            (rejected(ours) || has_null_field(case)).then_some(Exception::GoPanics)
        }
        "mirrorUnstructured" if rejected(go) => rejected(ours).then_some(Exception::UntypedMessage),
        "mirrorUnstructured" => (rejected(ours) && go_would_drop(case)).then_some(Exception::SilentlyDropped),
        _ => None,
    }
}

/// The lists an untyped object may have its conditions in.
fn lists(case: &Value) -> [&Value; 2] {
    let status = &case["content"]["status"];
    [&status["v1beta2"]["conditions"], &status["conditions"]]
}

fn entries(case: &Value) -> impl Iterator<Item = &Value> {
    lists(case).into_iter().filter_map(Value::as_array).flatten()
}

fn has_null_field(case: &Value) -> bool {
    entries(case).any(|entry| {
        entry
            .as_object()
            .is_some_and(|fields| fields.values().any(Value::is_null))
    })
}

fn go_would_drop(case: &Value) -> bool {
    let no_list = lists(case).iter().any(|list| !list.is_array() && !list.is_null());
    let no_condition = entries(case).any(|entry| !entry.is_object());
    let word_null = entries(case).any(|entry| entry["lastTransitionTime"] == "null");
    let twice = lists(case).into_iter().filter_map(Value::as_array).any(|list| {
        let mut types: Vec<&str> = list.iter().filter_map(|entry| entry["type"].as_str()).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        types.len() < all
    });
    no_list || no_condition || word_null || twice
}

/// A conflict's error without the detail behind it.
fn up_to_detail(text: &str) -> Option<&str> {
    text.split_once(" conflict: ").map(|(kept, _)| kept)
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
        assert_eq!(compare(&case, &go, &same), Outcome::Excepted(Exception::ConflictDetail));
        assert_eq!(compare(&case, &go, &other), Outcome::Different);
    }

    #[test]
    fn a_panic_of_go_is_excepted_only_where_this_side_answers_with_an_error() {
        let case = json!({"op": "mirrorUnstructured", "content": {}});
        let go = json!({"panic": "interface conversion"});
        assert_eq!(
            compare(&case, &go, &json!({"error": "type is a number"})),
            Outcome::Excepted(Exception::GoPanics)
        );
        assert_eq!(compare(&case, &go, &json!({"condition": {}})), Outcome::Different);
    }

    #[test]
    fn one_letter_makes_a_difference() {
        let (go, ours) = (
            json!({"condition": {"message": "a"}}),
            json!({"condition": {"message": "b"}}),
        );
        assert_eq!(compare(&json!({"op": "summary"}), &go, &ours), Outcome::Different);
    }
}
