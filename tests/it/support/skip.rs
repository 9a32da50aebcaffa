//! Says out loud, and in the file that `STAYPUT_SKIPS` names, what could not be run here and why.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that the test `name` was not run.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("skipped {name}: {reason}");
    if let Some(path) = std::env::var_os("STAYPUT_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        // One write, so that tests that end together do not mix their lines.
        file.write_all(format!("{name}\t{reason}\n").as_bytes()).unwrap();
    }
}
