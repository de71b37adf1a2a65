//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|it| it == "linux") {
        // At a fixed address: the tables of the registry hold many addresses, and a program that can be anywhere has to
        // write all of them when it starts. That is three megabytes of memory and a millisecond, each time.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
