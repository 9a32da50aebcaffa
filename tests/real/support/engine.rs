//! A real engine's node: its directories, its config as a mounted volume, its REST interface.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{FcntlArg, fcntl};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api::ANSWER_TIMEOUT;
use super::http::{Answer, exchange};
use super::kubelet::{AtomicWriter, payload};
use super::manager::{Launch, Manager};
use super::namespace::cannot_isolate;
use super::ports::free_loopback_port;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    OpenSearch,
    Elasticsearch,
}

impl Kind {
    /// Part of the arguments of the JVM that is the node, and of no other process.
    pub(crate) const fn server_class(self) -> &'static str {
        match self {
            Self::OpenSearch => "org.opensearch.bootstrap.OpenSearch",
            Self::Elasticsearch => "org.elasticsearch.server/",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenSearch => "opensearch",
            Self::Elasticsearch => "elasticsearch",
        }
    }

    /// The prefix of the engine's own variables.
    const fn prefix(self) -> &'static str {
        match self {
            Self::OpenSearch => "OPENSEARCH",
            Self::Elasticsearch => "ES",
        }
    }
}

/// Where an engine is installed.
pub(crate) fn home(kind: Kind) -> Option<PathBuf> {
    let variable = format!("STAYPUT_{}_HOME", kind.name().to_ascii_uppercase());
    std::env::var_os(variable).map(PathBuf::from)
}

/// A node's directories, owned by uid 1000, and its ports.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    directory: TempDir,
    home: PathBuf,
    java: OsString,
    http: u16,
    transport: u16,
    volume: AtomicWriter,
}

impl Node {
    /// A node whose config is a volume at `mount`, to be staged into `config`. `Err` names what is
    /// missing here.
    pub(crate) fn new(kind: Kind) -> Result<Self, String> {
        let home = home(kind).ok_or_else(|| format!("{} is not installed", kind.name()))?;
        let java = std::env::var_os("JAVA_HOME").ok_or("no JAVA_HOME")?;
        if let Some(why) = cannot_isolate() {
            return Err(why);
        }
        let directory = work_directory(&["mount", "config/jvm.options.d", "data", "logs", "tmp"]);
        let volume = AtomicWriter::new(&directory.path().join("mount"));
        let (http, transport) = (free_loopback_port(), free_loopback_port());
        let mut node = Self { kind, directory, home, java, http, transport, volume };
        node.swap("node.attr.stayput: first");
        Ok(node)
    }

    pub(crate) fn work(&self) -> &Path {
        self.directory.path()
    }

    /// From now on it is Elasticsearch as in its official images: its type is `docker`, and plugins can be
    /// installed.
    pub(crate) fn as_official_image(&mut self) {
        let home = self.work().join("home");
        let copy = |how| {
            let copied = Command::new("cp").arg(how).arg(&self.home).arg(&home).status();
            copied.expect("cp runs").success()
        };
        if !copy("-al") {
            // Links are not possible from one file system to another.
            let _ = fs::remove_dir_all(&home);
            assert!(copy("-a"), "no copy of {}", self.home.display());
        }
        // A new file: the old one is that of the part, by another name.
        let script = home.join("bin/elasticsearch-env");
        let text = fs::read_to_string(&script).expect("a script");
        let official = text.replace("ES_DISTRIBUTION_TYPE=zip", "ES_DISTRIBUTION_TYPE=docker");
        assert_ne!(official, text, "the type is set elsewhere");
        fs::remove_file(&script).expect("it can be replaced");
        fs::write(&script, official).expect("a script");
        chown(home.join("plugins"), Some(1000), Some(1000)).expect("as root, as all owners here");
        self.home = home;
    }

    fn at(&self, name: &str) -> String {
        self.work().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Where its REST interface is, on 127.0.0.1.
    pub(crate) fn http_port(&self) -> u16 {
        self.http
    }

    /// Replaces the content of the volume, as the kubelet does: the usual settings and these.
    /// Returns its checksum, computed with coreutils.
    pub(crate) fn swap(&mut self, settings: &str) -> String {
        self.swap_with(settings, &[])
    }

    /// The same with more files.
    pub(crate) fn swap_with(&mut self, settings: &str, files: &[(&str, &str)]) -> String {
        let [options, log4j] = own_files(&self.home, self.work());
        let mut yml = format!(
            "cluster.name: test\npath.data: {}\npath.logs: {}\nhttp.port: {}\ntransport.port: {}\n\
             discovery.type: single-node\n\
             cluster.routing.allocation.disk.threshold_enabled: false\n",
            self.at("data"),
            self.at("logs"),
            self.http,
            self.transport
        );
        if self.kind == Kind::Elasticsearch && !settings.contains("xpack.security.enabled") {
            yml += "xpack.security.enabled: false\n";
        }
        let name = format!("{}.yml", self.kind.name());
        let yml = yml + settings + "\n";
        let own = [(name.as_str(), yml.as_str()), ("jvm.options", &options)];
        let own = own.into_iter().chain([("log4j2.properties", log4j.as_str())]);
        self.volume.write(&payload(own.chain(files.iter().copied())));
        let line = "LC_ALL=C sha256sum * | sha256sum | cut -d' ' -f1";
        let sum = Command::new("sh").args(["-c", line]).current_dir(self.at("mount")).output();
        let sum = String::from_utf8(sum.expect("sha256sum runs").stdout).expect("UTF-8");
        format!("sha256:{}", sum.trim())
    }

    /// The launch of its manager: staged, last good kept, ready by the engine's health, and held if
    /// it ends by itself.
    pub(crate) fn launch(&self) -> Launch {
        let (mount, config) = (self.at("mount"), self.at("config"));
        let stage = format!("{mount}={config}");
        let ready = format!("http://127.0.0.1:{}/_cluster/health", self.http);
        let mut launch = Launch::new(self.work(), [self.executable()]).options([
            "--config",
            &mount,
            "--stage",
            &stage,
            "--keep-last-good",
            "--ready",
            &ready,
            "--tmp-dir",
            &self.at("tmp"),
            "--on-exit",
            "hold",
        ]);
        launch.variables = self.variables();
        launch
    }

    pub(crate) fn executable(&self) -> OsString {
        self.home.join("bin").join(self.kind.name()).into_os_string()
    }

    pub(crate) fn variables(&self) -> Vec<(String, OsString)> {
        variables(self.kind, &self.java, self.work())
    }

    /// Sends a request to the engine.
    pub(crate) fn rest(&self, method: &str, target: &str, body: Option<&Value>) -> Answer {
        let stream = TcpStream::connect(("127.0.0.1", self.http)).expect("the engine listens");
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a setting");
        exchange(stream, (method, target), body).expect("the engine answers")
    }

    /// The engine's `node.attr.stayput`.
    #[track_caller]
    pub(crate) fn attribute(&self) -> String {
        let local = self.rest("GET", "/_nodes/_local", None).expect(200);
        let nodes = local["nodes"].as_object().expect("nodes");
        let attribute = nodes.values().next().map(|node| &node["attributes"]["stayput"]);
        attribute.and_then(Value::as_str).expect("an attribute").to_owned()
    }

    /// Stores a document.
    #[track_caller]
    pub(crate) fn index(&self, id: usize) {
        let answer = self.rest("PUT", &format!("/docs/_doc/{id}"), Some(&json!({ "number": id })));
        assert!(matches!(answer.status, 200 | 201), "{:#}", answer.body);
    }

    /// How many documents are found.
    #[track_caller]
    pub(crate) fn count(&self) -> usize {
        let health = "/_cluster/health/docs?wait_for_status=yellow&timeout=60s";
        self.rest("GET", health, None).expect(200);
        self.rest("POST", "/docs/_refresh", None).expect(200);
        let count = self.rest("GET", "/docs/_count", None).expect(200);
        usize::try_from(count["count"].as_u64().expect("a number")).expect("a small number")
    }

    /// Whether the data path is free: tries to lock it as the engine does.
    #[track_caller]
    pub(crate) fn lock_is_free(&self) -> bool {
        let name = match self.kind {
            Kind::OpenSearch => "data/nodes/0/node.lock",
            Kind::Elasticsearch => "data/node.lock",
        };
        let file = OpenOptions::new().write(true).open(self.work().join(name)).expect("node.lock");
        let short = |number: i32| i16::try_from(number).expect("a small number");
        let lock = libc::flock {
            l_type: short(libc::F_WRLCK),
            l_whence: short(libc::SEEK_SET),
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // Unlocked when the file is closed.
        fcntl(&file, FcntlArg::F_SETLK(&lock)).is_ok()
    }

    /// Asserts that all processes of the engine are gone.
    #[track_caller]
    pub(crate) fn assert_gone(&self, manager: &Manager) {
        manager.assert_alone();
        assert!(self.lock_is_free(), "a process holds node.lock");
        assert!(TcpStream::connect(("127.0.0.1", self.http)).is_err(), "a process listens");
    }

    /// The JVM that is the node.
    #[track_caller]
    pub(crate) fn server(&self, manager: &Manager) -> super::namespace_processes::NamespaceProcess {
        manager.find(self.kind.server_class())
    }

    /// The JVM that the script becomes; that of Elasticsearch is not the node.
    #[track_caller]
    pub(crate) fn launcher(
        &self,
        manager: &Manager,
    ) -> super::namespace_processes::NamespaceProcess {
        match self.kind {
            Kind::OpenSearch => self.server(manager),
            Kind::Elasticsearch => manager.find("org.elasticsearch.launcher.CliToolLauncher"),
        }
    }
}

/// `jvm.options` and `log4j2.properties` of the engine, changed for a node with its logs and data
/// in `work`.
pub(crate) fn own_files(home: &Path, work: &Path) -> [String; 2] {
    let read = |name: &str| {
        fs::read_to_string(home.join("config").join(name)).expect("the engine's own file")
    };
    let work = work.display();
    let options = read("jvm.options")
        .lines()
        .filter(|line| !line.contains("logs/gc.log"))
        // The Java of `tests/parts/java25` does not have it.
        .filter(|line| !line.contains("--add-modules=jdk.incubator.vector"))
        .map(|line| line.replace("=logs/", &format!("={work}/logs/")))
        .map(|line| line.replace("Path=data", &format!("Path={work}/data")) + "\n")
        .collect();
    [options, read("log4j2.properties")]
}

/// The variables of an engine whose config is `work/config`: a small heap, a quick start.
pub(crate) fn variables(kind: Kind, java: &OsStr, work: &Path) -> Vec<(String, OsString)> {
    let heap = if kind == Kind::OpenSearch { "128m" } else { "256m" };
    let options = format!("-Xms{heap} -Xmx{heap} -XX:TieredStopAtLevel=1");
    let small = (format!("{}_JAVA_OPTS", kind.prefix()), options.into());
    // The launcher has options of its own. A second compiler costs it more time than it saves.
    let launcher = (kind == Kind::Elasticsearch)
        .then(|| ("CLI_JAVA_OPTS".to_owned(), "-XX:TieredStopAtLevel=1".into()));
    paths(kind, java, work).into_iter().chain([small]).chain(launcher).collect()
}

/// Where the engine's JVM is, and its config: `work/config`.
pub(crate) fn paths(kind: Kind, java: &OsStr, work: &Path) -> [(String, OsString); 2] {
    let prefix = kind.prefix();
    [
        (format!("{prefix}_JAVA_HOME"), java.to_owned()),
        (format!("{prefix}_PATH_CONF"), work.join("config").into_os_string()),
    ]
}

/// A new directory with these subdirectories and `state`, all owned by uid 1000.
pub(crate) fn work_directory(names: &[&str]) -> TempDir {
    let directory = tempfile::Builder::new().prefix("stayput-real.").tempdir().expect("a temp dir");
    let root = directory.path();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut own = vec![root.to_owned()];
    for name in names.iter().chain(&["state"]) {
        let path = root.join(name);
        fs::create_dir_all(&path).expect("a directory");
        let above = path.ancestors().take_while(|above| *above != root);
        own.extend(above.map(Path::to_owned));
    }
    for path in own {
        chown(path, Some(1000), Some(1000)).expect("only root can give a directory away");
    }
    directory
}
