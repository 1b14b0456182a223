//! What can be wrong with a condition, said with the object and the field it was found in.

use std::collections::HashSet;
use std::fmt;

use crate::limits::{MESSAGE_LIMIT, REASON_LIMIT};
use crate::{Conditioned, Metav1, Status};

/// A condition that is not as it should be.
///
/// ```
/// use kube_status::Untyped;
/// let object = serde_json::json!({
///     "kind": "Server",
///     "metadata": {"name": "m1"},
///     "status": {"conditions": [{"type": "Ready", "status": "Maybe"}]},
/// });
/// let error = Untyped::<kube_status::Condition>::read(&object).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"Server "m1": status.conditions[0].status: "Maybe" is none of True, False, Unknown"#,
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {problem}")]
pub struct Malformed {
    /// Kind and name of the object.
    pub object: String,
    /// The path of the field.
    pub field: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
///
/// ```
/// use kube_status::Problem;
/// assert_eq!(Problem::Duplicate("Ready".into()).to_string(), "\"Ready\" stands in the list twice");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is missing and required.
    Missing,
    /// It is present and empty.
    Empty,
    /// It has another JSON type: what was expected, what was found.
    WrongType {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
    /// A value that the field does not know.
    UnknownValue {
        /// The text.
        found: String,
        /// Those the field knows.
        known: &'static str,
    },
    /// Not a time as RFC 3339 writes it.
    Time(String),
    /// The same type stands in the list before.
    Duplicate(String),
    /// The API server would reject it: the text and the rule it breaks.
    Pattern {
        /// The text.
        found: String,
        /// The rule.
        rule: &'static str,
    },
    /// Longer than the API server takes: its length and the limit, in bytes.
    Long {
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
    /// A generation below zero.
    Negative(i64),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("must be set"),
            Self::Empty => f.write_str("must not be empty"),
            Self::WrongType { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::UnknownValue { found, known } => write!(f, "{found:?} is none of {known}"),
            Self::Time(found) => write!(f, "{found:?} is not a time like 2026-02-05T10:00:00Z"),
            Self::Duplicate(type_) => write!(f, "{type_:?} stands in the list twice"),
            Self::Pattern { found, rule } => write!(f, "{found:?} must be {rule}"),
            Self::Long { length, limit } => write!(f, "{length} bytes long, the limit is {limit}"),
            Self::Negative(number) => write!(f, "{number} is below zero"),
        }
    }
}

const TYPE_LIMIT: usize = 316;

/// Everything about an object's conditions that the API server would refuse, so that a test or a controller can say so
/// before a write fails.
///
/// ```
/// use kube_status::check;
/// # use kube_status::{Condition, Conditioned, Draft, Status};
/// # struct Server(Vec<Condition>);
/// # impl Conditioned for Server {
/// #     fn kind(&self) -> &str { "Server" }
/// #     fn name(&self) -> &str { "m1" }
/// #     fn generation(&self) -> i64 { 1 }
/// #     fn conditions(&self) -> &[Condition] { &self.0 }
/// # }
/// let spaced = Draft::new("Ready", Status::True, "all good").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// let problems = check(&Server(vec![spaced]));
/// assert_eq!(problems[0].field, "conditions[0].reason");
/// ```
pub fn check<C: Metav1, T: Conditioned<C> + ?Sized>(object: &T) -> Vec<Malformed> {
    let name = format!("{} {:?}", object.kind(), object.name());
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (i, condition) in object.conditions().iter().map(Metav1::plain).enumerate() {
        let mut report = |field: &str, problem: Option<Problem>| {
            let malformed = |problem| Malformed {
                object: name.clone(),
                field: format!("conditions[{i}].{field}"),
                problem,
            };
            found.extend(problem.map(malformed));
        };
        let type_ = condition.type_.as_str();
        let twice = (!seen.insert(type_)).then(|| Problem::Duplicate(type_.to_owned()));
        report("type", twice.or_else(|| text(type_, TYPE_LIMIT, is_type, TYPE_RULE)));
        let unknown = || Problem::UnknownValue {
            found: condition.status.clone(),
            known: STATUS_VALUES,
        };
        report("status", condition.status.parse::<Status>().err().map(|_| unknown()));
        report("reason", text(&condition.reason, REASON_LIMIT, is_reason, REASON_RULE));
        let length = condition.message.len();
        report(
            "message",
            (length > MESSAGE_LIMIT).then_some(Problem::Long {
                length,
                limit: MESSAGE_LIMIT,
            }),
        );
        let generation = condition.observed_generation.filter(|g| *g < 0);
        report("observedGeneration", generation.map(Problem::Negative));
    }
    found
}

pub(crate) const STATUS_VALUES: &str = "True, False, Unknown";
const TYPE_RULE: &str = "a name like Ready or example.org/Ready";
const REASON_RULE: &str = "a letter, then letters, digits, '_', ',' and ':', not ending in ',' or ':'";

fn text(found: &str, limit: usize, allowed: fn(&str) -> bool, rule: &'static str) -> Option<Problem> {
    if found.is_empty() {
        return Some(Problem::Empty);
    }
    if found.len() > limit {
        return Some(Problem::Long {
            length: found.len(),
            limit,
        });
    }
    (!allowed(found)).then(|| Problem::Pattern {
        found: found.to_owned(),
        rule,
    })
}

/// An optional DNS prefix and a slash, then a qualified name.
fn is_type(text: &str) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let label = |part: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty() && part.chars().all(allowed) && !part.starts_with('-') && !part.ends_with('-')
    };
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    prefix.is_none_or(|p| p.split('.').all(label))
        && name.chars().all(allowed)
        && ends(name.chars().next())
        && ends(name.chars().next_back())
}

fn is_reason(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(allowed)
}
