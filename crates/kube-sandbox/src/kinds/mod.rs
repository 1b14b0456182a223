//! The kinds the server knows: the built-in ones, and those that CRDs add.
//!
//! | what | where |
//! |---|---|
//! | all kinds, found by group, version and plural | [`Registry`] |
//! | the rows of the built-in kinds | `builtin` |
//! | what a CRD must look like, its names and conditions | [`crd`] |
//! | the columns of `kubectl get`, its cells, ages in words | [`columns`], [`table()`], [`age`] |
//! | OpenAPI documents | [`openapi`] |

use std::sync::Arc;

use crate::schema::Schema;

pub mod age;
mod builtin;
mod cell_text;
mod cells;
pub mod columns;
pub mod crd;
pub mod jsonpath;
pub mod openapi;
mod pod_cells;
mod registry;
mod table;

pub use builtin::definition_name;
pub use registry::Registry;
pub use table::{column_definitions, row_cells, table};

/// A column of `kubectl get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The head, `Name`.
    pub name: String,
    /// `string`, `integer`, `date` …
    pub kind: String,
    /// `name` for the first column, else empty.
    pub format: String,
    /// What `kubectl explain` would say.
    pub description: String,
    /// 0 is always shown, more only with `-o wide`.
    pub priority: i32,
    /// JSON path of a CRD's column; built-in kinds compute their cells in code.
    pub json_path: Option<String>,
}

/// Where the `scale` subresource finds its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// `.spec.replicas`
    pub spec: String,
    /// `.status.replicas`
    pub status: String,
    /// `.status.selector` of a CRD, which is text; built-in kinds have a label selector object at `.spec.selector`.
    pub selector: Option<String>,
}

/// One served version of one resource.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Empty for core.
    pub group: String,
    /// `v1`
    pub version: String,
    /// `Pod`
    pub kind: String,
    /// `PodList`
    pub list_kind: String,
    /// `pods`
    pub plural: String,
    /// `pod`
    pub singular: String,
    /// `po`
    pub short_names: Vec<String>,
    /// `all`
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Whether spec and status are written separately.
    pub has_status: bool,
    /// Set where `scale` is served.
    pub scale: Option<ScalePaths>,
    /// Further subresources, such as `log`, `exec`, `eviction`, `binding`, `token`.
    pub subresources: Vec<String>,
    /// Shape, defaults and rules of one object.
    pub schema: Arc<Schema>,
    /// For Tables.
    pub columns: Vec<Column>,
    /// From a CRD (no strategic patch, no protobuf).
    pub custom: bool,
    /// Field selectors a CRD adds to `metadata.name` and `metadata.namespace`, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
}

impl Kind {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}
