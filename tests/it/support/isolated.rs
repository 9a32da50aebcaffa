//! Runs the body of a test in a process of its own, where it may be PID 1, reap every process,
//! ignore signals or drop capabilities without an effect on other tests.
//!
//! The test binary executes itself again, for that one test and with a variable set.

use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::process::Command;

use super::skip;

/// Contains the test's name in the process that was made for it.
pub(crate) const INSIDE: &str = "STAYPUT_TEST_INSIDE";

/// The name of the calling test, as in the test harness, for [`isolated`].
macro_rules! test_name {
    ($name:ident) => {
        concat!(module_path!(), "::", stringify!($name))
    };
}
pub(crate) use test_name;

/// A process namespace: when its init ends, the kernel ends all other processes in it.
pub(crate) const NAMESPACE: [&str; 5] =
    ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// Runs `body` in a process of its own, and fails if it fails. `wrapper` is a command line put in
/// front, such as `setpriv …`; empty for none. If namespaces are available, a failing test leaves
/// no process behind; it is not PID 1 there.
pub(crate) fn isolated(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    let contained: &[&str] = &["sh", "-c", "\"$@\"; exit $?", "sh"];
    if is_inside(name) || can_run(&NAMESPACE).is_err() {
        run(name, wrapper, body)
    } else {
        run(name, &[&NAMESPACE, contained, wrapper].concat(), body)
    }
}

/// Runs `body` as PID 1 of a namespace; `wrapper` makes it.
pub(crate) fn isolated_as_pid_1(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    if is_inside(name) {
        body()
    } else {
        match can_run(wrapper) {
            Ok(()) => run(name, wrapper, body),
            Err(reason) => skip(name, &reason),
        }
    }
}

fn run(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    if is_inside(name) {
        return body();
    }
    let name = harness_name(name);
    let own = std::env::current_exe().unwrap();
    let mut line: Vec<&OsStr> = wrapper.iter().map(OsStr::new).collect();
    line.push(own.as_os_str());
    line.extend(["--exact", name, "--nocapture", "--test-threads=1"].map(OsStr::new));
    // A file and not a pipe: a process left behind would hold the pipe open.
    let mut output = tempfile::tempfile().unwrap();
    let status = Command::new(line[0])
        .args(&line[1..])
        .env(INSIDE, name)
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap())
        .status()
        .unwrap();
    let mut text = String::new();
    output.seek(SeekFrom::Start(0)).unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(status.success() && text.contains("1 passed"), "{name} inside: {status}\n{text}");
}

/// Whether this is the process made for the test.
pub(crate) fn is_inside(name: &str) -> bool {
    std::env::var_os(INSIDE).as_deref() == Some(OsStr::new(harness_name(name)))
}

/// The harness leaves the crate's name out.
pub(crate) fn harness_name(name: &str) -> &str {
    name.split_once("::").map_or(name, |(_, rest)| rest)
}

/// Whether such a wrapper can run here; its error if not.
pub(crate) fn can_run(wrapper: &[&str]) -> Result<(), String> {
    match Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output() {
        Ok(result) if result.status.success() => Ok(()),
        Ok(result) => Err(String::from_utf8_lossy(&result.stderr).trim().to_owned()),
        Err(error) => Err(format!("{}: {error}", wrapper[0])),
    }
}
