//! The operator on a sandbox, and its pure parts by tables.

mod alignment;
mod crashes;
mod database_retention;
mod docs;
mod health;
mod pitfalls;
mod rules;
mod world;
