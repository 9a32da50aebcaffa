//! A real kill by the out-of-memory killer is counted.

use std::fs;
use std::path::PathBuf;

use stayput_manager::process::{ExitStatus, Reaper, oom};

use super::{reap, shell};
use crate::support::isolated::{isolated, test_name};
use crate::support::skip;

#[test]
fn a_kill_for_lack_of_memory_is_counted() {
    let name = test_name!(a_kill_for_lack_of_memory_is_counted);
    isolated(name, &[], || {
        let group = match limited_group() {
            Ok(group) => group,
            Err(reason) => return skip(name, &reason),
        };
        let counter = oom::Counter::find().unwrap();
        let before = counter.read().unwrap();
        // Uses more memory than the group may: `tail` keeps its last line, which never ends.
        let engine = shell("exec tail /dev/zero");
        assert_eq!(reap(&mut Reaper::new(), engine), ExitStatus::Signal(9));
        assert_eq!(counter.read(), Some(before + 1));
        drop(group);
    });
}

/// Moves this process into a memory cgroup of version 1 with a limit; back out when dropped.
fn limited_group() -> Result<Group, String> {
    let cgroup = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let own = cgroup.lines().find_map(|line| line.split_once(":memory:")).map(|(_, path)| path);
    let parent =
        PathBuf::from(format!("/sys/fs/cgroup/memory{}", own.ok_or("no memory cgroup v1")?));
    let path = parent.join(format!("stayput-test-{}", std::process::id()));
    fs::create_dir(&path).map_err(|error| format!("cannot make a memory cgroup: {error}"))?;
    let group = Group { parent, path };
    fs::write(group.path.join("memory.limit_in_bytes"), "64M")
        .map_err(|error| error.to_string())?;
    let pid = std::process::id().to_string();
    fs::write(group.path.join("cgroup.procs"), pid).map_err(|error| error.to_string())?;
    Ok(group)
}

struct Group {
    parent: PathBuf,
    path: PathBuf,
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.parent.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.path);
    }
}
