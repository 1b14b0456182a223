//! Stock kubectl, run for real against a sandbox.

mod objects;
mod pods;
mod program;
