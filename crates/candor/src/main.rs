//! The program `candor`.
fn main() {}
