//! The operator on a sandbox, and its pure parts by tables.

mod alignment;
mod crashes;
mod health;
mod keeping;
mod pages;
mod pitfalls;
mod rules;
mod world;
