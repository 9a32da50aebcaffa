//! Where cargo puts the programs that it builds.

use std::path::PathBuf;

/// The program `name`, built in the same profile as the caller, which is a test or an example.
/// An example's name is `examples/NAME`.
///
/// Panics if the program was not built: cargo builds the programs of another package, and the
/// examples, only when asked to.
pub fn program(name: &str) -> PathBuf {
    let caller = std::env::current_exe().expect("a program knows its own path");
    let profile = caller.ancestors().nth(2).expect("target/PROFILE/{deps,examples}/CALLER");
    let path = profile.join(name);
    let command = match name.strip_prefix("examples/") {
        Some(example) => format!("cargo build --example {example}"),
        None => "cargo build -p stayput-standin --bins".to_owned(),
    };
    assert!(path.exists(), "{} is missing; build it: `{command}`", path.display());
    path
}
