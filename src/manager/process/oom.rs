//! Counts the processes that the kernel killed in the manager's cgroup because memory ran out.

use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's counter of out-of-memory kills, found once.
#[derive(Debug)]
pub struct Counter {
    file: PathBuf,
}

impl Counter {
    /// The counter of the manager's cgroup, of version 2 or of version 1's memory controller;
    /// `None` if there is neither, or it is not visible.
    pub fn find() -> Option<Self> {
        let cgroup = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let file = locate(&cgroup, &mountinfo)?;
        Some(Self { file })
    }

    /// Kills since the cgroup was made. Only an increase has a meaning: in version 2 a kill of the
    /// whole group counts more than once.
    pub fn read(&self) -> Option<u64> {
        count(&fs::read_to_string(&self.file).ok()?)
    }
}

/// The file that counts, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn locate(cgroup: &str, mountinfo: &str) -> Option<PathBuf> {
    // On a hybrid system version 2 exists without controllers; the memory controller is in version
    // 1.
    let (version, path) =
        group(cgroup, |controllers| controllers.split(',').any(|c| c == "memory"))
            .map(|path| (1, path))
            .or_else(|| group(cgroup, str::is_empty).map(|path| (2, path)))?;
    let mount = mountinfo.lines().filter_map(Mount::parse).find(|mount| match version {
        1 => mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "memory"),
        _ => mount.kind == "cgroup2",
    })?;
    let file = if version == 1 { "memory.oom_control" } else { "memory.events" };
    Some(mount.directory(path).join(file))
}

/// The path of our group in the hierarchy with such controllers: `4:memory:/path`, `0::/path`.
fn group(cgroup: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        wanted(controllers).then_some(path)
    })
}

/// A line of mountinfo: `ID PARENT DEV ROOT POINT OPTIONS [TAG…] - KIND SOURCE SUPER-OPTIONS`.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        let (root, point) = (left.next()?, left.next()?);
        let (kind, options) = (right.next()?, right.nth(1)?);
        Some(Self { root, point, kind, options })
    }

    /// The path at which the group is visible. A container may see only its own part of the
    /// hierarchy, mounted from `root` on, while the path begins at the top of the hierarchy.
    fn directory(&self, path: &str) -> PathBuf {
        let below = Path::new(path).strip_prefix(self.root).unwrap_or(Path::new(""));
        Path::new(self.point).join(below)
    }
}

/// Adds `oom_kill` and, in version 2, `oom_group_kill`.
fn count(text: &str) -> Option<u64> {
    let fields = text.lines().filter_map(|line| line.split_once(' '));
    let counts = fields.filter(|(name, _)| matches!(*name, "oom_kill" | "oom_group_kill"));
    counts.map(|(_, value)| value.trim().parse::<u64>().ok()).reduce(|a, b| Some(a? + b?))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const V2_MOUNTS: &str = "30 23 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate";

    fn located(cgroup: &str, mounts: &str) -> String {
        locate(cgroup, mounts).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn finds_version_1_also_on_a_hybrid_system() {
        let cgroup = "5:devices:/\n4:memory:/kubepods/a\n1:cpu:/\n0::/\n";
        assert_eq!(
            located(cgroup, V1_MOUNTS),
            "/sys/fs/cgroup/memory/kubepods/a/memory.oom_control"
        );
    }

    #[test]
    fn finds_version_1_in_a_container_that_sees_its_own_part() {
        let mounts = "900 899 0:32 /docker/4f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory";
        let own = "/sys/fs/cgroup/memory/memory.oom_control";
        assert_eq!(located("4:memory:/docker/4f\n", mounts), own);
        assert_eq!(
            located("4:cpu,memory:/docker/4f/in\n", mounts),
            "/sys/fs/cgroup/memory/in/memory.oom_control"
        );
    }

    #[test]
    fn finds_version_2() {
        assert_eq!(located("0::/\n", V2_MOUNTS), "/sys/fs/cgroup/memory.events");
        assert_eq!(located("0::/kube/pod\n", V2_MOUNTS), "/sys/fs/cgroup/kube/pod/memory.events");
        // A group outside of the manager's cgroup namespace: only the mount is visible.
        let part = V2_MOUNTS.replace(" / /sys", " /kube /sys");
        assert_eq!(located("0::/../other\n", &part), "/sys/fs/cgroup/memory.events");
    }

    #[test]
    fn no_memory_controller_is_no_counter() {
        assert_eq!(locate("", V2_MOUNTS), None);
        assert_eq!(locate("4:memory:/\n", V2_MOUNTS), None);
        assert_eq!(locate("torn", "torn - x"), None);
    }

    #[test]
    fn counts_kills_of_both_versions() {
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Some(3));
        assert_eq!(count("low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 1\n"), Some(3));
        assert_eq!(count("low 0\noom 1\noom_kill 1\n"), Some(1), "before Linux 5.17");
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\n"), None, "before Linux 4.13");
        assert_eq!(count("oom_kill many\n"), None);
    }
}
