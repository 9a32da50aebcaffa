//! Kind of a process, from its arguments: the engine's server JVM, another JVM, or something else.

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
}

impl CommandLine {
    /// Reads NUL-ended arguments; without any, falls back on the kernel's name of the process.
    pub(super) fn parse(text: &[u8], name: &str) -> Self {
        let text = String::from_utf8_lossy(text);
        let arguments: Vec<&str> = text.trim_end_matches('\0').split('\0').collect();
        let (program, rest) = match arguments.split_first() {
            Some((&program, rest)) if !program.is_empty() => (base_name(program), rest),
            _ => return Self { shown: format!("[{name}]"), jvm: false, server_jvm: false },
        };
        let jvm = program == "java";
        let server_jvm = jvm
            && rest.iter().any(|argument| is_server_class(argument))
            && !rest.iter().any(|argument| argument.ends_with("launcher.CliToolLauncher"));
        let what = if jvm { main_class(rest) } else { script(rest) };
        let shown = what.map_or(program.to_owned(), |what| format!("{program} {what}"));
        Self { shown: shown.chars().take(SHOWN_MAX).collect(), jvm, server_jvm }
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
}
