//! A command that goes on while the test does something.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use super::fixture::Fixture;

/// A running command; killed when dropped.
pub(super) struct Running {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Running {
    pub(super) fn start(fixture: &Fixture, line: &str) -> Self {
        let mut child = fixture.command(line).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self { child, lines: Some(BufReader::new(stdout).lines()) }
    }

    /// Reads up to the line that contains `part`.
    pub(super) async fn until(&mut self, part: &'static str) -> String {
        let mut lines = self.lines.take().unwrap();
        let (lines, found) = tokio::task::spawn_blocking(move || {
            let found = lines.by_ref().map(Result::unwrap).find(|line| line.contains(part));
            (lines, found)
        })
        .await
        .unwrap();
        self.lines = Some(lines);
        found.unwrap_or_else(|| panic!("it ended and never printed {part:?}"))
    }

    /// Its exit code, once it has ended.
    pub(super) async fn code(mut self) -> Option<i32> {
        let ended = tokio::task::spawn_blocking(move || self.child.wait().unwrap().code());
        ended.await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the child was waited for already, the standard library sends no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
