//! What the server does to objects of the built-in kinds before it stores them.
//!
//! | you look for | it is in |
//! |---|---|
//! | values for missing fields | [`defaults`] |
//! | what only the server may set | [`prepare_create`] |
//! | quantities | [`quantity`] |
//! | errors about one field | [`field`] |

pub mod defaults;
pub mod field;
mod prepare;
pub mod quantity;

pub use prepare::prepare_create;
