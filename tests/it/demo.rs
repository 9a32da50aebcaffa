//! The demo is an acceptance test that checks every answer itself; this test runs it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::programs::program;

#[test] // proves RESTART-2
fn the_demo_keeps_its_promises_and_leaves_nothing_behind() {
    let done =
        Command::new(program("examples/demo")).stdin(Stdio::null()).output().expect("it starts");
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{output}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(!output.contains('\x1b'), "there are colours without a terminal: {output}");
    let restarts = ["rolling       3 (3 restart)   done", "coordinated   3 (3 restart)   done"];
    assert!(restarts.iter().all(|restart| output.contains(restart)), "{output}");
    let directory = output.lines().find_map(|line| line.trim().strip_prefix("$ T="));
    assert!(!Path::new(directory.expect("it names its directory")).exists());
}
