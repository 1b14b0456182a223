//! Structural schemas: defaulting, pruning, validation, CEL.

/// The shape, defaults and rules of one kind.
#[derive(Debug, Default)]
pub struct Schema;
