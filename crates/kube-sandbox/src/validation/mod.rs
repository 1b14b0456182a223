//! What the server does to objects of the built-in kinds before it stores them.
//!
//! | you look for | it is in |
//! |---|---|
//! | errors about one field | [`field`] |

pub mod field;
