//! What the server does to objects of the built-in kinds before it stores them.
//!
//! | you look for | it is in |
//! |---|---|
//! | values for missing fields | [`defaults`] |
//! | what only the server may set | [`prepare_create`] |
//! | what metadata may hold | [`metadata`] |
//! | what objects may say, kind by kind | [`rules`] |
//! | the forms of names, labels and keys | [`names`] |
//! | quantities | [`quantity`] |
//! | errors about one field | [`field`] |

pub mod defaults;
pub mod field;
pub mod metadata;
pub mod names;
mod prepare;
pub mod quantity;
pub mod rules;

pub use prepare::prepare_create;
