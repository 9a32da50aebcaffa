//! The program in the place of `java` while the archive is made, as text; nothing is done here.

use std::path::Path;

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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;

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

        /// What the JVM is started with; none if it is not.
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
}
