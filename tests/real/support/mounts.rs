//! File systems that fail: full, read-only, hung.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::wait::eventually;

/// Runs a command that must succeed.
#[track_caller]
pub(crate) fn run(line: &[&str]) {
    let output = Command::new(line[0]).args(&line[1..]).output().expect(line[0]);
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A small file system in memory, owned by uid 1000; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; `Err` is the reason why it cannot be done here.
    pub(crate) fn mount(point: &Path) -> Result<Self, String> {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k,uid=1000,gid=1000,mode=0700", "stayput-test"])
            .arg(point)
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(Self(point.to_owned()))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    /// Uses all free space; it is free again when the file is removed.
    pub(crate) fn fill(&self) -> PathBuf {
        let file = self.0.join("filler");
        let error = fs::write(&file, vec![1; 1 << 20]).expect_err("1 MiB does not fit");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{error}");
        file
    }

    pub(crate) fn set_writable(&self, writable: bool) {
        let options = if writable { "remount,rw" } else { "remount,ro" };
        run(&["mount", "-o", options, self.0.to_str().expect("UTF-8")]);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A file system whose daemon can be frozen. Meanwhile, nothing here may access the mount.
#[derive(Debug)]
pub(crate) struct FrozenDisk {
    daemon: Child,
    point: PathBuf,
}

impl FrozenDisk {
    /// Mounts it on `point`, with the content of `backing`; `Err` is the reason why it cannot be done here.
    pub(crate) fn mount(backing: &Path, point: &Path) -> Result<Self, String> {
        let output = Command::new("/usr/bin/python3").args(["-c", "import fusepy"]).output();
        if !output.is_ok_and(|output| output.status.success()) || fs::metadata("/dev/fuse").is_err()
        {
            return Err("no FUSE or no fusepy".to_owned());
        }
        let daemon = Command::new("/usr/bin/python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/failing_fs.py"))
            .arg(backing)
            .arg(point)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut disk = Self { daemon, point: point.to_owned() };
        eventually("the file system is mounted", || {
            let ended = disk.daemon.try_wait().expect("the daemon is ours");
            assert_eq!(ended, None, "the daemon ended");
            disk.is_mounted().then_some(())
        });
        Ok(disk)
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("/proc");
        let point = self.point.to_str().expect("UTF-8");
        mounts.lines().any(|line| line.split(' ').nth(1) == Some(point))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.daemon.id()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("the daemon is there");
    }

    /// Freezes the daemon at the access of a process of its own, which waits until this is dropped.
    pub(crate) fn hang_at(&self, file: &Path) -> Child {
        let visitor = Command::new("cat").arg(self.point.join(file)).stdout(Stdio::null()).spawn();
        eventually("the daemon has stopped", || self.is_frozen().then_some(()));
        visitor.expect("cat")
    }

    /// Whether the daemon has stopped.
    pub(crate) fn is_frozen(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.daemon.id())).expect("/proc");
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        // The end of the daemon frees the processes that wait for it.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = Command::new("umount").arg("--lazy").arg(&self.point).status();
    }
}
