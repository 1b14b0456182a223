//! The parts of a tree: objects, and conditions with their tone.

use jiff::Timestamp;

use crate::draft::known_time;
use crate::readers::{Health, Reading};
use crate::severity::{self, Severity};
use crate::{Condition, Metav1, Polarity, Status};

/// The tone and colour of a condition: polarity and severity as one value.
///
/// ```
/// use kube_status::severity::Severity;
/// use kube_status::tree::Tone;
/// use kube_status::{Polarity, Status};
///
/// assert_eq!(Tone::of(Status::True, Polarity::Negative, Some(Severity::Warning)), Tone::Warning);
/// assert_eq!(Tone::of(Status::True, Polarity::Positive, None), Tone::Good);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// As it should be: green.
    Good,
    /// Not there yet, and that is to be expected: cyan.
    Info,
    /// Could still work, look at it: yellow.
    Warning,
    /// Wrong: red.
    Error,
    /// Not known: magenta.
    Unknown,
}

impl Tone {
    /// The tone of a status; bad news without a severity is an error.
    ///
    /// ```
    /// use kube_status::tree::Tone;
    /// use kube_status::{Polarity, Status};
    ///
    /// assert_eq!(Tone::of(Status::True, Polarity::Positive, None), Tone::Good);
    /// ```
    pub fn of(status: Status, polarity: Polarity, severity: Option<Severity>) -> Self {
        if status == Status::Unknown {
            return Self::Unknown;
        }
        if status == polarity.good() {
            return Self::Good;
        }
        match severity {
            Some(Severity::Info) => Self::Info,
            Some(Severity::Warning) => Self::Warning,
            Some(Severity::Error) | None => Self::Error,
        }
    }

    /// The colour's number in an escape sequence.
    pub(super) fn ansi(self) -> u8 {
        match self {
            Self::Good => 32,
            Self::Info => 36,
            Self::Warning => 33,
            Self::Error => 31,
            Self::Unknown => 35,
        }
    }
}

/// One condition as the tree shows it.
///
/// ```
/// use kube_status::tree::{Line, Tone};
/// use kube_status::{Draft, Polarity, Status};
///
/// let degraded = Draft::new("Degraded", Status::True, "ReplicaLost").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!(Line::of(&degraded, Polarity::Negative).tone, Tone::Error);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The condition's type.
    pub type_: String,
    /// Its status.
    pub status: Status,
    /// Its tone.
    pub tone: Tone,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// When it turned.
    pub since: Option<Timestamp>,
}

impl Line {
    /// A condition of generation 2, with its severity where it has one.
    ///
    /// ```
    /// use kube_status::tree::{Line, Tone};
    /// use kube_status::{Draft, Polarity};
    ///
    /// let down = Draft::bad("Ready", "Down").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Line::of(&down, Polarity::Positive).tone, Tone::Error);
    /// ```
    pub fn of<C: Metav1>(condition: &C, polarity: Polarity) -> Self {
        Self::with_severity(condition.plain(), polarity, condition.severity())
    }

    /// A condition of generation 2 with a severity from elsewhere, as from the declaration of its reason.
    ///
    /// ```
    /// use kube_status::severity::Severity;
    /// use kube_status::tree::{Line, Tone};
    /// use kube_status::{Draft, Polarity, Status};
    ///
    /// let ready = Draft::new("Ready", Status::False, "Creating").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Line::with_severity(&ready, Polarity::Positive, Some(Severity::Info)).tone, Tone::Info);
    /// ```
    pub fn with_severity(condition: &Condition, polarity: Polarity, severity: Option<Severity>) -> Self {
        let status = Status::of(condition);
        Self {
            type_: condition.type_.clone(),
            status,
            tone: Tone::of(status, polarity, severity),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: known_time(condition),
        }
    }

    /// A condition of generation 1.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// use kube_status::tree::{Line, Tone};
    /// use kube_status::Polarity;
    ///
    /// let vpc = Draft::bad("VPCReady", Severity::Info, "Provisioning", "").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Line::of_first(&vpc, Polarity::Positive).tone, Tone::Info);
    /// ```
    pub fn of_first(condition: &severity::Condition, polarity: Polarity) -> Self {
        Self {
            type_: condition.type_().to_owned(),
            status: condition.status(),
            tone: Tone::of(condition.status(), polarity, condition.severity()),
            reason: condition.reason().to_owned(),
            message: condition.message().to_owned(),
            since: condition.last_transition_time(),
        }
    }

    /// The result of a reader for an object without conditions.
    ///
    /// ```
    /// use kube_status::readers::read_value;
    /// use kube_status::tree::{Line, Tone};
    /// use serde_json::json;
    ///
    /// let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}});
    /// assert_eq!(Line::read(&read_value(&claim).unwrap()).tone, Tone::Info);
    /// ```
    pub fn read(reading: &Reading) -> Self {
        let tone = match reading.health {
            Health::Ready => Tone::Good,
            Health::Progressing | Health::Deleting => Tone::Info,
            Health::Unknown => Tone::Unknown,
            Health::Stuck => Tone::Warning,
            Health::Failed => Tone::Error,
        };
        Self {
            type_: "Ready".to_owned(),
            status: reading.status(),
            tone,
            reason: reading.reason.clone(),
            message: reading.message.clone(),
            since: reading.since,
        }
    }
}

/// An object of the tree.
///
/// ```
/// use kube_status::tree::Node;
///
/// let cluster = Node::new("ValkeyCluster", "prod").child(Node::new("ValkeyNode", "prod-0-0"));
/// assert_eq!(cluster.title(), "ValkeyCluster/prod");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The object's kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// Its conditions, in the order in which they are shown.
    pub lines: Vec<Line>,
    /// The objects below it.
    pub children: Vec<Node>,
}

/// The condition that speaks for an object, best first; without any of them the first one does.
const SPEAKERS: [&str; 3] = ["Ready", "Available", "Succeeded"];

impl Node {
    /// An object without conditions and children.
    ///
    /// ```
    /// assert!(kube_status::tree::Node::new("Cache", "c").lines.is_empty());
    /// ```
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
            lines: Vec::new(),
            children: Vec::new(),
        }
    }

    /// The object with one more condition.
    ///
    /// ```
    /// use kube_status::tree::{Line, Node};
    /// use kube_status::{Draft, Polarity};
    ///
    /// let up = Draft::good("Ready", "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Node::new("Cache", "c").line(Line::of(&up, Polarity::Positive)).lines.len(), 1);
    /// ```
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    /// The object with these conditions of generation 2; `negative` names the types for which True is bad.
    ///
    /// ```
    /// use kube_status::tree::{Node, Tone};
    /// use kube_status::{Draft, Status};
    ///
    /// let conditions = [Draft::new("Paused", Status::True, "Asked").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// let node = Node::new("Cart", "a").conditions(&conditions, &["Paused"]);
    /// assert_eq!(node.lines[0].tone, Tone::Error);
    /// ```
    #[must_use]
    pub fn conditions<C: Metav1>(mut self, conditions: &[C], negative: &[&str]) -> Self {
        self.lines.extend(conditions.iter().map(|condition| {
            let is_negative = negative.contains(&condition.plain().type_.as_str());
            Line::of(
                condition,
                if is_negative {
                    Polarity::Negative
                } else {
                    Polarity::Positive
                },
            )
        }));
        self
    }

    /// The object with one more object below it.
    ///
    /// ```
    /// use kube_status::tree::Node;
    ///
    /// let shop = Node::new("Shop", "main").child(Node::new("Cache", "a")).child(Node::new("Cache", "b"));
    /// assert_eq!(shop.children.len(), 2);
    /// ```
    #[must_use]
    pub fn child(mut self, child: Node) -> Self {
        self.children.push(child);
        self
    }

    /// `Kind/name`.
    ///
    /// ```
    /// assert_eq!(kube_status::tree::Node::new("Cache", "c").title(), "Cache/c");
    /// ```
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// The condition in the object's own row.
    pub(super) fn speaker(&self) -> Option<&Line> {
        let named = SPEAKERS
            .iter()
            .find_map(|type_| self.lines.iter().find(|line| line.type_ == *type_));
        named.or(self.lines.first())
    }
}
