//! The operator on a sandbox, and its pure parts by tables.

mod alignment;
mod world;
