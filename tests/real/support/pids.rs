//! A cgroup with a limit on processes and threads, as that of a container.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::wait::eventually;

/// Makes threads until no more can be made, and takes each place that becomes free. Creates the
/// file `full` when there was none for a second.
pub(crate) const TAKES_ALL: &str = r#"
import threading, time
threading.stack_size(65536)
failed = 0
while True:
    try:
        threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
        failed = 0
    except RuntimeError:
        failed += 1
        if failed == 100:
            open("full", "w").close()
        time.sleep(0.01)
"#;

/// Removed when dropped; nothing may be in it then.
#[derive(Debug)]
pub(crate) struct PidsLimit(PathBuf);

impl PidsLimit {
    /// Makes it; `Err` is the reason why it cannot be done here.
    pub(crate) fn new(most: u32) -> Result<Self, String> {
        // Version 1 has a directory of its own for each controller.
        let version_1 = Path::new("/sys/fs/cgroup/pids");
        let root = if version_1.is_dir() { version_1 } else { Path::new("/sys/fs/cgroup") };
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let group = Self(root.join(format!("stayput-test-{}-{number}", std::process::id())));
        let failed = |error: std::io::Error| format!("{}: {error}", group.0.display());
        fs::create_dir(&group.0).map_err(failed)?;
        fs::write(group.0.join("pids.max"), most.to_string()).map_err(failed)?;
        Ok(group)
    }

    /// A command that begins in the group.
    pub(crate) fn wrapper(&self) -> [String; 4] {
        let enter = format!("echo 0 > {}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh".to_owned(), "-c".to_owned(), enter, "sh".to_owned()]
    }

    /// Takes all places that are left, until the answer is dropped.
    pub(crate) fn fill(&self, work: &Path) -> Filler {
        let wrapper = self.wrapper();
        let mut command = Command::new(&wrapper[0]);
        command.args(&wrapper[1..]).args(["python3", "-c", TAKES_ALL]);
        let filler = command.current_dir(work).stdin(Stdio::null()).spawn();
        let filler = Filler(filler.expect("sh can be executed"));
        until_full(work);
        filler
    }
}

/// Waits until [`TAKES_ALL`] has taken all.
#[track_caller]
pub(crate) fn until_full(work: &Path) {
    let full = work.join("full");
    eventually("no thread can be made", || full.exists().then_some(()));
    fs::remove_file(full).expect("a file");
}

impl Drop for PidsLimit {
    fn drop(&mut self) {
        // Dead processes stay in it for a moment.
        eventually("the group is empty", || fs::remove_dir(&self.0).ok());
    }
}

/// A process that has all places.
#[derive(Debug)]
pub(crate) struct Filler(Child);

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
