//! The questions both sides are asked, as they go over the wire: one JSON object per line.
//!
//! A name that ends in 1 belongs to generation 1 (severities); `meta…` is apimachinery's own helper.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Case {
    /// Set a condition on an object of a generation.
    Set {
        object: Object,
        condition: Words,
        order: Sorting,
    },
    /// Delete a type from an object.
    Delete {
        object: Object,
        #[serde(rename = "type")]
        type_: String,
    },
    /// Read one type in every way there is.
    Get {
        object: Object,
        #[serde(rename = "type")]
        type_: String,
    },
    /// Summarise some types of an object.
    Summary {
        object: Object,
        target: String,
        types: Vec<String>,
        negative: Vec<String>,
        ignore: Vec<String>,
        overrides: Vec<Words>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strategy: Option<Strategy>,
    },
    /// Mirror one type of an object; an empty target keeps the type.
    Mirror {
        object: Object,
        #[serde(rename = "type")]
        type_: String,
        target: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<Fallback>,
    },
    /// Mirror from an object of any shape.
    MirrorUnstructured {
        content: Value,
        #[serde(rename = "type")]
        type_: String,
        target: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<Fallback>,
    },
    /// Aggregate one type over many objects; an empty target keeps the type.
    Aggregate {
        objects: Vec<Object>,
        #[serde(rename = "type")]
        type_: String,
        target: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        negative: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strategy: Option<Strategy>,
    },
    /// The plural of a kind.
    Plural { kind: String },
    /// Apply the difference of two objects to a third.
    Patch {
        before: Object,
        after: Object,
        latest: Object,
        owned: Vec<String>,
        force: bool,
        order: Sorting,
    },
    /// `meta.SetStatusCondition` on a bare list.
    MetaSet { object: Object, condition: Words },
    /// `meta.RemoveStatusCondition` on a bare list.
    MetaRemove {
        object: Object,
        #[serde(rename = "type")]
        type_: String,
    },
    /// Generation 1: set.
    Set1 { object: Object, condition: Words },
    /// Generation 1: set with the caller's transition time.
    SetWithTime1 { object: Object, condition: Words },
    /// Generation 1: set through the constructor for a polarity.
    Mark1 {
        object: Object,
        condition: Words,
        negative: bool,
    },
    /// Generation 1: delete.
    Delete1 {
        object: Object,
        #[serde(rename = "type")]
        type_: String,
    },
    /// Generation 1: summarise into Ready and set it.
    Summary1 {
        object: Object,
        #[serde(flatten)]
        merge: Merge1,
    },
    /// Generation 1: mirror another object's Ready and set it.
    Mirror1 {
        object: Object,
        from: Object,
        target: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<Fallback1>,
    },
    /// Generation 1: aggregate the Ready of many objects and set it.
    Aggregate1 {
        object: Object,
        objects: Vec<Object>,
        target: String,
        #[serde(flatten)]
        merge: Merge1,
    },
    /// Generation 1: apply the difference of two objects to a third.
    Patch1 {
        before: Object,
        after: Object,
        latest: Object,
        owned: Vec<String>,
        force: bool,
    },
}

/// An object with its conditions; the operation says of which generation they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object {
    pub kind: String,
    pub name: String,
    pub generation: i64,
    pub control_plane: bool,
    pub conditions: Vec<Words>,
}

/// The fields of a condition, of either generation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Words {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub severity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<jiff::Timestamp>,
    pub reason: String,
    pub message: String,
}

/// How a list is sorted after a write.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sorting {
    /// Cluster API's own order.
    Default,
    /// Left as it is.
    None,
    /// A caller's order, here plainly by name.
    ByName,
}

/// The default merge strategy with its options spelled out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    pub negative_target: bool,
    pub negative: Vec<String>,
    /// The reasons for issues, unknown and info.
    pub reasons: Option<[String; 3]>,
    /// The reason of the first condition of the top group, with its owner's name.
    pub first_reason: bool,
    /// Whatever waits is no issue.
    pub patient: bool,
    /// At most so many lines of a summary.
    pub max_lines: Option<usize>,
}

/// What a mirror reports when the source has no condition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fallback {
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// The same for generation 1, where a fallback is plainly true or false.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fallback1 {
    pub value: bool,
    pub reason: String,
    pub severity: String,
    pub message: String,
}

/// The options of generation 1's merge.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Merge1 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negative: Option<Vec<String>>,
    pub step_counter: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_counter_only: Option<Vec<String>>,
    pub source_ref: bool,
}

impl Case {
    /// The operation's name, for the count.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Set { .. } | Self::Set1 { .. } => "set",
            Self::SetWithTime1 { .. } => "set with time",
            Self::Mark1 { .. } => "mark",
            Self::Delete { .. } | Self::Delete1 { .. } => "delete",
            Self::Get { .. } => "get",
            Self::Summary { .. } | Self::Summary1 { .. } => "summary",
            Self::Mirror { .. } | Self::Mirror1 { .. } => "mirror",
            Self::MirrorUnstructured { .. } => "mirror, untyped",
            Self::Aggregate { .. } | Self::Aggregate1 { .. } => "aggregate",
            Self::Plural { .. } => "plural",
            Self::Patch { .. } | Self::Patch1 { .. } => "patch",
            Self::MetaSet { .. } => "apimachinery set",
            Self::MetaRemove { .. } => "apimachinery remove",
        }
    }
}
