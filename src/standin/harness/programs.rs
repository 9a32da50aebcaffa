//! Where cargo puts the programs that it builds, how to start them and programs of a test's own; signals
//! to processes, and what `/proc` shows of them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The program `name`, built in the same profile as the caller, which is a test or an example.
/// An example's name is `examples/NAME`.
///
/// Panics if the program was not built: cargo builds programs of another package, and examples,
/// only on request.
pub fn program(name: &str) -> PathBuf {
    let caller = std::env::current_exe().expect("a program knows its own path");
    let profile = caller.ancestors().nth(2).expect("target/PROFILE/{deps,examples}/CALLER");
    let path = profile.join(name);
    // With these options, dependencies get the same features as for the tests.
    let command = "cargo build --workspace --bins --examples";
    assert!(path.exists(), "{} is missing; build it: `{command}`", path.display());
    path
}

/// Writes a program that this test executes: one that the kernel knows, or a script.
///
/// Another process does it. A file that this process opens for writing is also open in each child that
/// another thread has just forked, and until that child executes its program, the kernel refuses to
/// execute the file (`ETXTBSY`).
pub fn write_program(path: &Path, content: &[u8]) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().expect("install can be executed");
    let written = install.stdin.take().expect("a pipe").write_all(content);
    assert!(install.wait().expect("its end").success(), "{}", path.display());
    written.expect("all was written");
}

/// Removes the settings of a manager or an engine from the environment of `command`.
pub fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["STAYPUT_", "ES_", "OPENSEARCH_"].iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

/// Sends a signal to a process that the caller started.
pub fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    // The process may have ended in the meantime.
    let _ = kill(pid, signal);
}

/// Pids of the children of `pid`, including zombies.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The command line of `pid`, its arguments separated by spaces.
pub fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline"));
    String::from_utf8_lossy(&line.unwrap_or_default()).replace('\0', " ")
}
