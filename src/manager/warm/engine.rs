//! One run of the engine while an archive is made, in which another program takes the place of `java`;
//! and what an archive is for.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{fs, thread};

use super::{Until, WarmError};
use crate::process::{
    self, Archive, EnvironmentChanges, ExitStatus, Launch, LaunchError, RUN_VARIABLE, Reaper, Tree,
    Unread,
};

/// How long an engine may take to accept connections on a slow builder.
const START_LIMIT: Duration = Duration::from_secs(300);
/// How long an engine may take to end; the JVM writes the archive meanwhile.
const STOP_LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long one read may take: a signal does not end it.
const READ_LIMIT: Duration = Duration::from_millis(200);
/// How long the engine's processes may take to end by KILL: one that waits for a disk does not.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Requests whose classes every node needs soon. Their answers do not matter: a secured engine refuses
/// them, and then its archive lacks some classes.
const REQUESTS: [(&str, &str, &str); 5] = [
    ("GET", "/_cluster/health?wait_for_status=yellow&timeout=10s", ""),
    ("PUT", "/stayput-warm/_doc/1?refresh=true", r#"{"number": 1}"#),
    ("GET", "/stayput-warm/_search?q=number:1", ""),
    ("POST", "/stayput-warm/_flush", ""),
    ("GET", "/_nodes", ""),
];

pub(super) struct Engine {
    tree: Tree,
    reaper: Reaper,
    address: SocketAddr,
    launched: Instant,
    until: Until,
    ended: Option<ExitStatus>,
}

impl Engine {
    /// Starts the command; its output is ours.
    pub(super) fn start(
        argv: Vec<OsString>,
        mut set_env: EnvironmentChanges,
        http: u16,
        until: Until,
    ) -> Result<Self, LaunchError> {
        let cookie = format!("warm-{}", process::own_pid());
        set_env.push((RUN_VARIABLE.into(), Some(cookie.clone().into())));
        let launched = Instant::now();
        let pid = process::launch(&Launch { argv, set_env })?.pid;
        Ok(Self {
            tree: Tree::new(pid, &cookie, !process::is_pid_1()),
            reaper: Reaper::new(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, http)),
            launched,
            until,
            ended: None,
        })
    }

    /// Waits until the engine accepts connections; returns the time since its launch.
    pub(super) fn until_serving(&mut self) -> Result<Duration, WarmError> {
        while TcpStream::connect(self.address).is_err() {
            self.reap();
            if let Some(status) = self.ended {
                return Err(WarmError::Ended(status.shell_code()));
            }
            self.pause(START_LIMIT, self.launched, "accept connections")?;
        }
        Ok(self.launched.elapsed())
    }

    /// Sends the requests.
    pub(super) fn use_once(&self) {
        for (method, target, body) in REQUESTS {
            let Ok(mut stream) = TcpStream::connect(self.address) else { return };
            let until = self.until.at_most(Instant::now() + ANSWER_LIMIT);
            let length = body.len();
            let request = format!(
                "{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = stream.write_all(request.as_bytes());
            read_until(&mut stream, &until);
        }
    }

    /// The archive that the server JVM was told to use, and whether it uses it.
    pub(super) fn archive(&mut self) -> Result<Option<Archive>, WarmError> {
        let began = Instant::now();
        loop {
            match self.tree.archive() {
                Ok(archive) => return Ok(archive),
                Err(Unread) => self.pause(ANSWER_LIMIT, began, "let its arguments be read")?,
            }
        }
    }

    /// Stops the engine and waits until no process is left.
    pub(super) fn stop(mut self) -> Result<(), WarmError> {
        self.tree.signal_leader(libc::SIGTERM);
        let asked = Instant::now();
        while self.ended.is_none() {
            self.reap();
            self.pause(STOP_LIMIT, asked, "end")?;
        }
        Ok(())
    }

    fn reap(&mut self) {
        let leader = self.tree.unreaped_leader();
        if let [Some(status)] = process::statuses_of([leader], self.reaper.reap()) {
            self.ended = Some(status);
            self.tree.leader_reaped();
        }
    }

    fn pause(&self, limit: Duration, since: Instant, what: &'static str) -> Result<(), WarmError> {
        self.until.signalled()?;
        if since.elapsed() >= limit || self.until.left(PAUSE).is_none() {
            return Err(WarmError::Late { what, waited: since.elapsed() });
        }
        thread::sleep(PAUSE);
        Ok(())
    }
}

impl Drop for Engine {
    /// Kills the remaining processes, such as an agent that an image's entrypoint leaves in the
    /// background; after an error all.
    fn drop(&mut self) {
        let began = Instant::now();
        loop {
            self.tree.kill_all();
            self.reap();
            if self.tree.scan().is_empty() || began.elapsed() >= KILL_LIMIT {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Reads the answer, or the part of it that comes before the limit.
fn read_until(stream: &mut TcpStream, until: &Until) {
    let mut part = [0; 4096];
    while let Some(left) = until.left(READ_LIMIT) {
        if stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut part) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return,
            },
        }
    }
}

/// Classes that run a node in a JVM that the engine's script starts itself.
const SERVERS: &str =
    "org.opensearch.bootstrap.OpenSearch|org.elasticsearch.bootstrap.Elasticsearch";

/// A shell script: the server JVM writes the archive when it ends. Before it, the engine's script
/// starts other JVMs with the same options, so an option file would not do.
///
/// A JVM with an agent writes no archive, but uses one that was made without, if its boot class path
/// is the same. An agent extends that path by what its manifest names, so the script does as much.
pub(super) fn program(home: &Path, archive: &Path, work: &Path) -> String {
    let [java, jar] = ["bin/java", "bin/jar"].map(|name| quoted(&home.join(name)));
    let (archive, work) = (quoted(archive), quoted(work));
    format!(
        r#"#!/bin/sh
server=
for argument; do
    case $argument in {SERVERS}) server=yes ;; esac
done
[ "$server" ] || exec {java} "$@"
for argument; do
    shift
    case $argument in
    -javaagent:*)
        agent=${{argument#-javaagent:}} agent=${{agent%%=*}}
        directory=$(dirname "$agent") file=$(readlink -f "$agent")
        (cd {work} && {jar} xf "$file" META-INF/MANIFEST.MF) || exit
        # A long line of a manifest goes on after a line's end and a space.
        for added in $(tr -d '\r' <{work}/META-INF/MANIFEST.MF | sed -e :a -e '$!N; s/\n //; ta' -e 'P; D' |
            sed -n 's/^Boot-Class-Path: *//p'); do
            set -- "$@" "-Xbootclasspath/a:$directory/$added"
        done ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} -XX:ArchiveClassesAtExit={archive} "$@"
"#
    )
}

/// The path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The JVM's own file about its build, and a line for each jar of the engine's `lib`: its name, its size in
/// bytes, and its time of change in seconds since 1970. The JVM checks the same, and ignores an archive
/// that was made with others. `options` is a file of `jvm.options.d`, beside which `lib` is in all images
/// of engines; what is not there adds nothing.
pub(super) fn made_for(java_home: &Path, options: &Path) -> Result<String, WarmError> {
    let mut text = read(&java_home.join("release"))?;
    let lib = options.ancestors().nth(3).map(|home| home.join("lib"));
    let mut jars = lib.as_deref().map_or_else(|| Ok(Vec::new()), jars)?;
    jars.sort();
    text.push_str(&jars.concat());
    Ok(text)
}

fn read(path: &Path) -> Result<String, WarmError> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(WarmError::File { path: path.to_owned(), source }),
    }
}

fn jars(lib: &Path) -> Result<Vec<String>, WarmError> {
    let failed = |source| WarmError::File { path: lib.to_owned(), source };
    let entries = match fs::read_dir(lib) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut lines = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            // A link is followed, as the JVM does.
            let found = fs::metadata(&path).map_err(failed)?;
            let changed = found.modified().map_err(failed)?;
            let seconds = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.push(format!("{name} {} {seconds}\n", found.len()));
        }
    }
    Ok(lines)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_answer_that_goes_on_and_on_is_read_for_a_limited_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let server = thread::spawn(move || while server.write_all(b"more").is_ok() {});
        read_until(&mut stream, &Until::of(Instant::now() + Duration::from_millis(20)));
        drop(stream);
        server.join().unwrap();
    }

    const SERVER: &str = "org.opensearch.bootstrap.OpenSearch";
    /// As in a jar that Gradle has made: lines end by CR and LF, and have at most 72 bytes.
    const MANIFEST: &str = "Manifest-Version: 1.0\\r\\nBoot-Class-Path: first.jar secon\\r\\n d.jar\\r\\n\
                            Premain-Class: Agent\\r\\n";

    struct Jdk(tempfile::TempDir);

    impl Jdk {
        /// Its `java` prints its arguments, each in a line; its `jar` knows one file.
        fn new() -> Self {
            let own = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(own.path("it's/bin")).unwrap();
            fs::create_dir(own.path("work")).unwrap();
            own.script("it's/bin/java", "printf '%s\\n' \"$@\"");
            let jar = format!(
                "[ \"$1 $3\" = 'xf META-INF/MANIFEST.MF' ] && [ -e \"$2\" ] && mkdir META-INF && \
                 printf '{MANIFEST}' >\"$3\""
            );
            own.script("it's/bin/jar", &jar);
            let text = program(&own.path("it's"), Path::new("/a.jsa"), &own.path("work"));
            fs::write(own.path("java"), text).unwrap();
            own
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn script(&self, name: &str, text: &str) {
            // By another process: while this one has it open, so has a child that another thread is
            // just starting, and then it cannot be executed.
            let mut install = Command::new("install");
            install.args(["-m", "755", "/dev/stdin"]).arg(self.path(name)).stdin(Stdio::piped());
            let mut install = install.spawn().unwrap();
            write!(install.stdin.take().unwrap(), "#!/bin/sh\n{text}\n").unwrap();
            assert!(install.wait().unwrap().success());
        }

        /// Arguments that `java` was run with at last, if it was run.
        fn run(&self, arguments: &[&str]) -> Option<Vec<String>> {
            let output = self.path("output");
            let ended = Command::new("/bin/sh")
                .arg(self.path("java"))
                .args(arguments)
                .stdout(File::create(&output).unwrap())
                .current_dir(self.0.path())
                .status()
                .unwrap();
            let text = fs::read_to_string(output).unwrap();
            ended.success().then(|| text.lines().map(str::to_owned).collect())
        }
    }

    #[test] // proves STOP-26
    fn only_the_server_writes_an_archive() {
        let jdk = Jdk::new();
        let other = ["-Xmx1g", "a b", "org.opensearch.tools.launchers.TempDirectory"];
        assert_eq!(jdk.run(&other).unwrap(), other);
        assert_eq!(
            jdk.run(&["-Xmx1g", SERVER, "-Ea=b c"]).unwrap(),
            ["-XX:ArchiveClassesAtExit=/a.jsa", "-Xmx1g", SERVER, "-Ea=b c"]
        );
    }

    #[test] // proves STOP-26
    fn instead_of_an_agent_there_is_its_boot_class_path() {
        let jdk = Jdk::new();
        fs::create_dir(jdk.path("agent")).unwrap();
        fs::write(jdk.path("agent/agent.jar"), "").unwrap();
        assert_eq!(
            jdk.run(&["-a", "-javaagent:agent/agent.jar=option", "-b", SERVER]).unwrap(),
            [
                "-XX:ArchiveClassesAtExit=/a.jsa",
                "-a",
                "-Xbootclasspath/a:agent/first.jar",
                "-Xbootclasspath/a:agent/second.jar",
                "-b",
                SERVER
            ]
        );
        assert_eq!(jdk.run(&["-javaagent:agent/none.jar", SERVER]), None);
    }

    #[test] // proves STOP-27
    fn another_jvm_and_another_jar_are_seen_and_other_files_are_not() {
        let home = tempfile::tempdir().unwrap();
        let (java, lib) = (home.path().join("jdk"), home.path().join("lib"));
        let options = home.path().join("config/jvm.options.d/warm.options");
        let now = || made_for(&java, &options).unwrap();
        assert_eq!(now(), "");
        fs::create_dir_all(&java).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let mut seen = vec![now()];
        for (path, text) in [
            (java.join("release"), "JAVA_VERSION=\"17.0.1\"\n"),
            (java.join("release"), "JAVA_VERSION=\"17.0.2\"\n"),
            (lib.join("b.jar"), "1"),
            (lib.join("a.jar"), "1"),
            (lib.join("a.jar"), "12"),
        ] {
            fs::write(path, text).unwrap();
            seen.push(now());
            assert!(seen[..seen.len() - 1].iter().all(|before| *before != now()), "{seen:#?}");
        }
        for other in [lib.join("tools.txt"), java.join("other")] {
            fs::write(other, "1").unwrap();
            assert_eq!(seen.last(), Some(&now()));
        }
        let touched = fs::File::options().append(true).open(lib.join("a.jar")).unwrap();
        touched.set_modified(UNIX_EPOCH).unwrap();
        assert_ne!(seen.last(), Some(&now()));
    }
}
