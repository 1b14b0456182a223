//! The web page in a real browser, and as a hostile program asks for it. Members are simulated; API server, operator and
//! page are real.

mod browser;
mod changes;
#[path = "../cli/hand.rs"]
#[allow(dead_code)] // tests of the command line ask for more
mod hand;
mod logins;
mod requests;
mod scenes;
mod stage;
