//! Checks whether a server JVM uses the class-data archive that it was told to use. A JVM that an
//! archive does not fit ignores it without a word.

use std::fs;

use super::procfs;
use super::scan::{Member, read_within};
use super::tree::Tree;

/// Options that name an archive of classes.
const OPTIONS: [&str; 2] = ["-XX:SharedArchiveFile=", "-XX:AOTCache="];

/// The archive that a JVM was told to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    pub path: String,
    /// True if the JVM has mapped the archive.
    pub is_used: bool,
    /// True if the JVM's class path has a wildcard, which the JVM reads in the order of the directory. That
    /// order differs from one file system to another, and an archive is for one order.
    pub order_varies: bool,
}

impl Tree {
    /// The archive of the server JVM, if it names one on its command line and can be read.
    pub fn archive(&mut self) -> Option<Archive> {
        let scan = self.scan();
        let server = scan.members().find(|member: &&Member| member.server_jvm)?.pid;
        read_within(self.reader(), move || read(server))?
    }
}

fn read(pid: u32) -> Option<Archive> {
    let arguments = procfs::command_line(pid);
    let path = named(&arguments)?;
    // The kernel shows where a link goes.
    let real = fs::canonicalize(&path).ok();
    let real = real.as_deref().and_then(std::path::Path::to_str).unwrap_or(&path);
    let is_used = is_mapped(&fs::read_to_string(format!("/proc/{pid}/maps")).ok()?, real);
    Some(Archive { path, is_used, order_varies: has_wildcard(&arguments) })
}

/// True if the value of a class path ends in `/*`, in any of its parts.
fn has_wildcard(arguments: &[u8]) -> bool {
    let text = String::from_utf8_lossy(arguments);
    let arguments: Vec<&str> = text.split('\0').collect();
    arguments.windows(2).any(|pair| {
        ["-cp", "-classpath", "--class-path"].contains(&pair[0])
            && pair[1].split(':').any(|part| part.ends_with('*'))
    })
}

/// The archive in these NUL-ended arguments; of several the last one, as for the JVM.
fn named(arguments: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(arguments);
    let options = text.split('\0').rev();
    let value =
        options.filter_map(|option| OPTIONS.iter().find_map(|name| option.strip_prefix(name)));
    // Before a colon is the archive of the JDK itself.
    let path = value.map(|value| value.rsplit(':').next().unwrap_or(value)).next()?;
    (!path.is_empty()).then(|| path.to_owned())
}

/// True if a line of `/proc/PID/maps` shows this file.
fn is_mapped(maps: &str, path: &str) -> bool {
    // Address, permissions, offset, device, inode, path; the path may hold spaces.
    let file = |line: &str| {
        (0..5).try_fold(line.to_owned(), |rest, _| {
            rest.trim_start().split_once(' ').map(|(_, rest)| rest.to_owned())
        })
    };
    maps.lines().filter_map(file).any(|file| file.trim_start() == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_archive_named_counts() {
        for (arguments, path) in [
            ("java\0-Xmx1g\0-XX:SharedArchiveFile=/a.jsa\0Main\0", Some("/a.jsa")),
            ("java\0-XX:SharedArchiveFile=/a\0-XX:SharedArchiveFile=/b\0Main\0", Some("/b")),
            ("java\0-XX:SharedArchiveFile=/jdk/classes.jsa:/a.jsa\0Main\0", Some("/a.jsa")),
            ("java\0-XX:AOTCache=/a.aot\0Main\0", Some("/a.aot")),
            ("java\0-XX:SharedArchiveFile=\0Main\0", None),
            ("java\0-XX:ArchiveClassesAtExit=/a.jsa\0Main\0", None),
            ("java\0Main\0", None),
            ("", None),
        ] {
            assert_eq!(named(arguments.as_bytes()).as_deref(), path, "{arguments:?}");
        }
    }

    #[test]
    fn a_wildcard_is_seen_in_the_class_path_alone() {
        for (arguments, wildcard) in [
            ("java\0-cp\0/h/lib/*\0Main\0", true),
            ("java\0--class-path\0/h/a.jar:/h/lib/*\0Main\0", true),
            ("java\0-cp\0/h/lib/a.jar:/h/lib/b.jar\0Main\0", false),
            ("java\0-Da=/x/*\0-cp\0/h/a.jar\0Main\0/h/*\0", false),
            ("", false),
        ] {
            assert_eq!(has_wildcard(arguments.as_bytes()), wildcard, "{arguments:?}");
        }
    }

    #[test]
    fn a_mapped_file_is_found_by_its_whole_path() {
        let maps = "\
7f00-7f01 r--p 00000000 fe:00 12     /usr/lib/jvm/lib/server/classes.jsa
7f02-7f03 rw-p 00001000 fe:00 345    /opt/a b/warm.jsa
7f04-7f05 rw-p 00000000 00:00 0 
7f06-7f07 rw-p 00000000 fe:00 9      /gone.jsa (deleted)
";
        for (path, mapped) in [
            ("/opt/a b/warm.jsa", true),
            ("/usr/lib/jvm/lib/server/classes.jsa", true),
            ("/warm.jsa", false),
            ("/opt/a b/warm", false),
            ("/gone.jsa", false),
        ] {
            assert_eq!(is_mapped(maps, path), mapped, "{path}");
        }
    }
}
