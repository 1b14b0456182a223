//! Links the released program with compact relocations (`DT_RELR`): the loader reads every relocation at the start, so the
//! usual format costs two megabytes of resident memory in every process, Robin's among them. Needs glibc 2.36 (Debian 12).

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
