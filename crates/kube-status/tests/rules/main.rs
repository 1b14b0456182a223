//! The rules of the contract and the examples of the proposals, each as a test that names it.

mod aggregate;
mod bad_input;
mod declarations;
mod graded;
mod laws;
mod mirror;
mod operations;
mod patch;
mod polarity;
mod proposal;
mod research;
mod setting;
mod severities;
mod summary;
mod thing;
mod untyped;
