//! The result of a scan of a run's processes: what each one is, from its arguments.

use std::fs;
use std::time::Duration;

use super::procfs::{self, Process};
use super::signals::{self, Children};
use super::tree::Tree;
use crate::worker::Worker;

/// A live process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub pid: u32,
    /// Program, and script or main class; no other arguments, which may be secret.
    pub command: String,
    /// True for a JVM: QUIT makes it print its threads.
    pub jvm: bool,
    /// True for the engine's server JVM, which holds `node.lock`.
    pub server_jvm: bool,
    /// True in an uninterruptible wait (D): KILL does not end the process before the wait ends.
    pub uninterruptible: bool,
    /// False if its arguments could not be read in time: it may be anything then.
    pub(super) is_read: bool,
    pub(super) started: u64,
}

/// The live processes of a run, and other children of the manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The process that was launched, while it lives.
    pub leader: Option<Member>,
    /// The run's server JVMs other than the leader.
    pub server: Vec<Member>,
    /// All other processes of the run.
    pub stragglers: Vec<Member>,
    /// Adopted orphans that do not belong to the run. Never signalled.
    pub strangers: Vec<Member>,
    /// Reason why it is not certain that no process is left, and what to do: the kernel reports
    /// children that could not be read. Not set if the kernel reports that no child is left.
    pub unseen: Option<String>,
    /// True if no process of the run was found, but a child has ended and is not reaped yet. That child may
    /// have forked while `/proc` was read, and until it is reaped the kernel reports nothing about children
    /// that `/proc` may hide. Reap and scan again; the child's SIGCHLD is still to come.
    pub unreaped: bool,
}

impl Scan {
    /// True if it is certain that no process of the run lives.
    pub fn is_empty(&self) -> bool {
        self.shows_none() && self.unseen.is_none() && !self.unreaped
    }

    /// True if no process of the run was found.
    pub(super) fn shows_none(&self) -> bool {
        self.members().next().is_none()
    }

    /// Asks the kernel whether a child may live that was not found; `why` says why it was not.
    pub(super) fn ask_for_others(&mut self, why: &str) {
        match signals::children() {
            Children::None => {}
            Children::Ended => self.unreaped = true,
            Children::Alive => self.unseen = Some(why.to_owned()),
        }
    }

    /// The pid of the server JVM, if there is one.
    fn server_jvm(&self) -> Result<Option<u32>, Unread> {
        match self.members().find(|member| member.server_jvm) {
            Some(server) => Ok(Some(server.pid)),
            None if self.members().all(|member| member.is_read) => Ok(None),
            None => Err(Unread),
        }
    }

    /// Every live process of the run, the leader first.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.leader.iter().chain(&self.server).chain(&self.stragglers)
    }
}

impl Member {
    pub(super) fn new(process: &Process, command: CommandLine) -> Self {
        let CommandLine { shown, jvm, server_jvm, is_read } = command;
        Self {
            pid: process.pid,
            command: shown,
            jvm,
            server_jvm,
            uninterruptible: process.uninterruptible,
            is_read,
            started: process.started,
        }
    }

    /// True for a server JVM, and for a JVM that could not be read in time. That may be the server: it gets the
    /// stop signal and the server's time to end.
    pub(super) fn may_be_server(&self) -> bool {
        self.server_jvm || !self.is_read && self.command == "[java]"
    }
}

/// How long reading from a process may take. Usually it takes some microseconds.
const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// Reads from a process's own memory: its arguments or its environment. That waits as long as the process
/// holds its memory's lock, and for a disk that its memory is mapped from. `None` if it takes too long.
pub(super) fn read_within<T: Send + 'static>(
    reader: Option<&Worker>,
    read: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match reader {
        Some(reader) => reader.run_within(READ_TIMEOUT, read),
        None => Some(read()),
    }
}

/// Reads kind and name of a process from its arguments.
pub(super) fn read_command(process: &Process, reader: Option<&Worker>) -> CommandLine {
    let pid = process.pid;
    // Reading the arguments of a process that waits for a disk may wait, too.
    let arguments = if process.uninterruptible {
        None
    } else {
        read_within(reader, move || procfs::command_line(pid))
    };
    let is_read = arguments.is_some();
    CommandLine { is_read, ..CommandLine::parse(&arguments.unwrap_or_default(), &process.name) }
}

/// Longest command shown, in characters.
const SHOWN_MAX: usize = 100;

/// Kind and name of a process, from its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Program, and its script or main class. Nothing else: arguments may be passwords.
    pub(super) shown: String,
    /// True for a `java` process.
    pub(super) jvm: bool,
    /// True for the JVM that holds the engine's data path.
    pub(super) server_jvm: bool,
    /// False if the arguments could not be read in time.
    pub(super) is_read: bool,
}

impl CommandLine {
    /// Reads NUL-ended arguments; without any, falls back on the kernel's name of the process.
    pub(super) fn parse(text: &[u8], name: &str) -> Self {
        let text = String::from_utf8_lossy(text);
        let arguments: Vec<&str> = text.trim_end_matches('\0').split('\0').collect();
        let (program, rest) = match arguments.split_first() {
            Some((&program, rest)) if !program.is_empty() => (base_name(program), rest),
            _ => {
                let shown = format!("[{name}]");
                return Self { shown, jvm: false, server_jvm: false, is_read: true };
            }
        };
        let jvm = program == "java";
        let server_jvm = jvm
            && rest.iter().any(|argument| is_server_class(argument))
            && !rest.iter().any(|argument| argument.ends_with("launcher.CliToolLauncher"));
        let what = if jvm { main_class(rest) } else { script(rest) };
        let shown = what.map_or(program.to_owned(), |what| format!("{program} {what}"));
        Self { shown: shown.chars().take(SHOWN_MAX).collect(), jvm, server_jvm, is_read: true }
    }
}

/// True for the class, bare or behind its module, that runs a node.
fn is_server_class(argument: &str) -> bool {
    argument == "org.elasticsearch.bootstrap.Elasticsearch"
        || argument == "org.opensearch.bootstrap.OpenSearch"
        || argument.starts_with("org.elasticsearch.server/")
}

/// Class, module or jar that a JVM runs: the first argument that is neither an option nor an option's value.
fn main_class<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument {
            "-m" | "--module" | "-jar" => return rest.next().copied(),
            "-cp"
            | "-classpath"
            | "--class-path"
            | "-p"
            | "--module-path"
            | "--add-modules"
            | "--add-opens"
            | "--add-exports"
            | "--add-reads"
            | "--limit-modules"
            | "--upgrade-module-path" => {
                rest.next();
            }
            _ if argument.starts_with('-') || argument.starts_with('@') => {}
            _ => return Some(argument),
        }
    }
    None
}

/// The script that a shell or another interpreter runs.
fn script<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    arguments.first().copied().filter(|argument| argument.starts_with('/'))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

// Checks whether a server JVM uses the class-data archive that it was told to use. A JVM that an
// archive does not fit ignores it without a word.

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

/// A process did not let itself be read in time, as a JVM on a busy machine while it maps memory. Try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread;

impl Tree {
    /// The archive of the server JVM, if it names one on its command line and may be read.
    ///
    /// # Errors
    /// The server JVM, or a process that may be it, did not let itself be read in time.
    pub fn archive(&mut self) -> Result<Option<Archive>, Unread> {
        match self.scan().server_jvm()? {
            Some(pid) => read_within(self.reader(), move || read_archive(pid)).ok_or(Unread),
            None => Ok(None),
        }
    }
}

fn read_archive(pid: u32) -> Option<Archive> {
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

    fn parse(arguments: &[&str]) -> CommandLine {
        let text: String = arguments.iter().map(|argument| format!("{argument}\0")).collect();
        CommandLine::parse(text.as_bytes(), "name")
    }

    #[test]
    fn tells_the_server_from_its_launcher() {
        let launcher = parse(&[
            "/usr/share/elasticsearch/jdk/bin/java",
            "-Xms4m",
            "-Dcli.name=server",
            "-cp",
            "/usr/share/elasticsearch/lib/*",
            "org.elasticsearch.launcher.CliToolLauncher",
            "-E",
            "a=b",
        ]);
        assert!(launcher.jvm && !launcher.server_jvm);
        assert_eq!(launcher.shown, "java org.elasticsearch.launcher.CliToolLauncher");
        let server = parse(&[
            "/usr/share/elasticsearch/jdk/bin/java",
            "-Xmx1g",
            "--module-path",
            "/lib",
            "--add-modules=jdk.net",
            "-m",
            "org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch",
        ]);
        assert!(server.jvm && server.server_jvm);
        assert!(
            parse(&["java", "-cp", "x", "org.opensearch.bootstrap.OpenSearch", "-d"]).server_jvm
        );
        assert!(parse(&["java", "org.elasticsearch.bootstrap.Elasticsearch"]).server_jvm, "7.x");
    }

    #[test]
    fn a_program_that_only_mentions_the_class_is_no_jvm() {
        let grep = parse(&["grep", "org.opensearch.bootstrap.OpenSearch", "/proc/1/cmdline"]);
        assert!(!grep.jvm && !grep.server_jvm);
        let agent =
            parse(&["java", "-Xmx64m", "-cp", "lib/*", "org.opensearch.performanceanalyzer.Agent"]);
        assert!(agent.jvm && !agent.server_jvm);
    }

    #[test]
    fn arguments_that_may_be_secret_are_not_shown() {
        assert_eq!(parse(&["curl", "-u", "elastic:changeme", "https://x"]).shown, "curl");
        assert_eq!(parse(&["/bin/sh", "-c", "echo secret"]).shown, "sh");
        assert_eq!(
            parse(&["bash", "/usr/share/opensearch/agent-start", "pw"]).shown,
            "bash /usr/share/opensearch/agent-start"
        );
        assert_eq!(parse(&["java", "-Dpassword=x"]).shown, "java");
        assert_eq!(parse(&[]).shown, "[name]");
        assert_eq!(parse(&["x".repeat(500).as_str()]).shown.len(), SHOWN_MAX);
    }

    #[test]
    fn a_process_that_was_not_read_in_time_may_be_the_server() {
        let member = |pid, server_jvm, is_read| {
            let (command, jvm, uninterruptible) = (String::new(), server_jvm, false);
            Member { pid, command, jvm, server_jvm, uninterruptible, is_read, started: 0 }
        };
        let scan = |leader, others: &[Member]| Scan {
            leader: Some(leader),
            stragglers: others.to_vec(),
            ..Scan::default()
        };
        let (script, server) = (member(10, false, true), member(11, true, true));
        let unread = member(12, false, false);
        assert_eq!(scan(script.clone(), &[]).server_jvm(), Ok(None));
        assert_eq!(scan(server, std::slice::from_ref(&unread)).server_jvm(), Ok(Some(11)));
        assert_eq!(scan(script, &[unread]).server_jvm(), Err(Unread));
    }

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

    #[test] // proves STOP-2
    fn a_jvm_that_cannot_be_read_may_be_the_server() {
        for (name, uninterruptible, may_be) in
            [("java", true, true), ("java", false, false), ("sleep", true, false)]
        {
            let (pid, name) = (u32::MAX, name.to_owned());
            let process = Process {
                pid,
                parent: 1,
                session: 1,
                started: 0,
                alive: true,
                uninterruptible,
                name,
            };
            let member = Member::new(&process, read_command(&process, None));
            assert_eq!(member.may_be_server(), may_be, "{process:?}");
        }
    }
}
