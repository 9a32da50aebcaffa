//! Reports tests that cannot run here, with the reason: on stdout, and in the file that
//! `STAYPUT_SKIPS` names.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that the test `name` was not run.
pub fn skip(name: &str, reason: &str) {
    println!("skipped {name}: {reason}");
    if let Some(path) = std::env::var_os("STAYPUT_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write, so that lines of parallel tests do not mix.
        let line = format!("{name}\t{reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file that STAYPUT_SKIPS names can be written");
    }
}
