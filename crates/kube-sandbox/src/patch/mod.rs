//! Patches: pure functions from an object and a patch to the changed object.
//!
//! | media type | function |
//! |---|---|
//! | `application/json-patch+json` | [`json_patch()`] |
//! | `application/merge-patch+json` | [`merge_patch`] |
//! | `application/strategic-merge-patch+json` (built-in kinds only) | [`strategic_merge`] |

mod go_format;
mod json;
mod order;
mod strategic;

pub(crate) use go_format::{go_format, used};
pub use json::{json_patch, merge_patch};
pub use strategic::strategic_merge;
