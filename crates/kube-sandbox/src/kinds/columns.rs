//! The columns of `kubectl get` for every built-in kind.

use super::Column;

/// What a real server says about the age of an object.
pub const CREATION_TIMESTAMP: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this \
    value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of one built-in kind.
pub fn of(_group: &str, _kind: &str) -> Vec<Column> {
    vec![name_column()]
}

/// The first column of every Table.
pub fn name_column() -> Column {
    column("Name", "string", 0).formatted("name")
}

/// A column without a path.
pub fn column(name: &str, kind: &str, priority: i32) -> Column {
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority,
        json_path: None,
    }
}

impl Column {
    fn formatted(mut self, format: &str) -> Self {
        format.clone_into(&mut self.format);
        self
    }
}
