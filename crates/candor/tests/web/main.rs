//! The web page in a real browser, and as a hostile program asks for it. Members are simulated; API server, operator and
//! page are real.

mod browser;
mod changes;
mod logins;
mod requests;
#[path = "../cli/runner.rs"]
#[allow(dead_code)] // tests of the command line ask for more
mod runner;
mod scenes;
mod stage;
