//! Fallback for a manager that another version has executed and that cannot start: PID 1 must not
//! end while the engine runs.

use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use crate::supervisor::Taken;

/// Delay between a failed attempt and the next one.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Calls `make`. If it fails after an upgrade, executes the previous version again. If that fails,
/// too, retries until one works: the same obstacle stops both, such as a limit on processes that
/// the engine has reached.
pub(super) fn make_or_go_back<T>(
    taken: Option<&Taken>,
    mut make: impl FnMut() -> Result<T, Vec<String>>,
) -> Result<T, Vec<String>> {
    let Some(taken) = taken else { return make() };
    loop {
        let why = match catch_unwind(AssertUnwindSafe(&mut make)) {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(problems)) => problems.join("; "),
            Err(_) => "it panicked, which is an error in stayput".to_owned(),
        };
        taken.go_back(&why);
        // There may be no log yet. If stderr is closed, nobody can be told.
        let _ = writeln!(io::stderr(), "stayput: cannot take over yet, the engine runs on: {why}");
        thread::sleep(RETRY_DELAY);
    }
}
