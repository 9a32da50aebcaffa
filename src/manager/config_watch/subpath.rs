//! Mounts that never change while the container lives: subPath and single-file mounts.
//!
//! The kubelet binds the one file or directory that the path led to when the container was made.
//! The next generation of the volume is another directory, so the container keeps the old file.
//! `/proc/self/mountinfo` shows it: the root of such a mount is a path inside the volume, below a
//! generation's directory (`..2026_…`), and marked deleted once that generation is gone.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// A message for each mount at or below `dir` (an absolute path without links) that cannot change.
pub(super) fn messages(
    mountinfo: &[u8],
    dir: &Path,
    is_directory: impl Fn(&Path) -> bool,
) -> Vec<String> {
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(mount)
        .filter(|(_, point)| point.starts_with(dir))
        .filter_map(|(root, point)| {
            let shown = point.display();
            if is_subpath(&root) {
                Some(format!(
                    "{shown} is mounted by subPath and never changes while the container lives: \
                     mount the whole volume on a directory of its own, give that to --config and \
                     copy it to where the engine reads it with --stage"
                ))
            } else if point != dir && !is_directory(&point) {
                Some(format!(
                    "{shown} is a file mounted by itself and does not change when its source is \
                     replaced: mount the directory it comes from, give that to --config and copy \
                     it to where the engine reads it with --stage"
                ))
            } else {
                None
            }
        })
        .collect()
}

/// Root within its filesystem, and mount point, of a line of mountinfo (proc_pid_mountinfo(5)).
fn mount(line: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    Some((unescaped(fields.next()?), unescaped(fields.next()?)))
}

fn is_subpath(root: &Path) -> bool {
    root.as_os_str().as_bytes().ends_with(b"//deleted")
        || root.components().any(|component| match component {
            Component::Normal(name) => {
                let name = name.as_bytes();
                name == b"volume-subpaths"
                    || name.strip_prefix(b"..").is_some_and(|rest| rest.starts_with(b"2"))
            }
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => false,
        })
}

/// The field without escapes: space, tab, newline and backslash are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        rest = match octal {
            Some(byte) => {
                bytes.push(byte);
                &tail[3..]
            }
            None => {
                bytes.push(*first);
                tail
            }
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mountinfo: &str) -> Vec<String> {
        messages(mountinfo.as_bytes(), Path::new("/config"), |path| {
            path.extension().is_none_or(|extension| extension == "d")
        })
    }

    #[test]
    fn whole_volumes_and_mounts_elsewhere_are_fine() {
        let mountinfo = "\
22 1 0:20 / / rw,relatime - overlay overlay rw
36 22 0:45 / /config ro,relatime - tmpfs tmpfs rw,size=8k
37 22 8:1 /var/lib/kubelet/pods/u/volumes/kubernetes.io~configmap/c /config/jvm.options.d ro - ext4 /dev/sda1 rw
38 22 0:46 /..2026_11_21_09_00_00.1/hosts.yml /config2/hosts.yml ro - tmpfs tmpfs rw
39 22 8:1 /var/lib/docker/x/hosts /etc/hosts rw - ext4 /dev/sda1 rw
";
        assert_eq!(found(mountinfo), Vec::<String>::new());
    }

    #[test]
    fn subpath_mounts_are_named_with_what_to_do() {
        for root in [
            "/..2026_11_21_09_00_00.123456789/elasticsearch.yml",
            "/..2026_11_21_09_00_00.123456789/elasticsearch.yml//deleted",
            "/old//deleted",
            "/var/lib/kubelet/pods/u/volume-subpaths/config/elasticsearch/0",
            "/var/lib/kubelet/pods/u/volumes/kubernetes.io~configmap/c/..2026_11_21/elasticsearch.yml",
        ] {
            let line = format!("36 22 0:45 {root} /config/elasticsearch.yml ro - tmpfs tmpfs rw");
            let found = found(&line);
            assert_eq!(found.len(), 1, "{root}");
            assert!(found[0].starts_with("/config/elasticsearch.yml is mounted by subPath"));
            assert!(found[0].contains("--stage"));
        }
    }

    #[test]
    fn a_directory_may_itself_be_a_subpath() {
        assert_eq!(found("36 22 0:45 /..2026_11_21/sub /config ro - tmpfs tmpfs rw").len(), 1);
    }

    #[test]
    fn a_file_mounted_by_itself_is_named() {
        let found = found("36 22 8:1 /home/me/es.yml /config/my\\040es.yml ro - ext4 /dev/sda1 rw");
        assert!(found[0].starts_with("/config/my es.yml is a file mounted by itself"), "{found:?}");
    }

    #[test]
    fn a_torn_mountinfo_tells_nothing() {
        assert_eq!(found("36 22\n\n36 22 0:45 /x\n\\0 \\ \\999 \\99 \\"), Vec::<String>::new());
    }
}
