//! Faults of the API, and of a node without inotify: where a journal says that the engine runs, it
//! runs, the socket is served, and the fault is shown until it is over.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use stayput_api::Code;
use stayput_http::jwt::{Grant, Scopes, mint};
use stayput_http::manager_client::{
    Address, Answer, ClientError, Credentials, ManagerClient, Token,
};
use stayput_manager::errors::ErrorCode;

use super::manager::Manager;
use super::pod::Pod;
use super::processes::eventually;
use crate::support::isolated::can_run;
use crate::support::pki::Pki;
use crate::support::ports::free_loopback_port;
use crate::support::skip;

/// EX_UNAVAILABLE of sysexits.
const UNAVAILABLE: i32 = 69;

/// The key of tokens.
const SHARED: &str = "0123456789abcdef0123456789abcdef";

/// A pod with a listener, whose manager was killed while its engine ran.
struct Faulty {
    pod: Pod,
    pki: Pki,
    port: u16,
}

impl Faulty {
    fn new() -> Self {
        let pod = Pod::new();
        let pki = Pki::named(&["stayput"]);
        pod.write("shared", SHARED);
        fs::create_dir(pod.path("keys")).expect("a directory");
        for name in ["cert", "key", "ca"] {
            fs::copy(pki.file(name), pod.path(&format!("keys/{name}"))).expect("a copy");
        }
        Self { pod, pki, port: free_loopback_port() }
    }

    fn command(&self) -> Command {
        let options = [
            ("--listen", format!("127.0.0.1:{}", self.port)),
            ("--tls-cert", self.pod.path("keys/cert").display().to_string()),
            ("--tls-key", self.pod.path("keys/key").display().to_string()),
            ("--client-ca", self.pod.path("keys/ca").display().to_string()),
            ("--allow-client", "stayput=control".to_owned()),
            ("--jwt-key", self.pod.path("shared").display().to_string()),
            ("--jwt-audience", "here".to_owned()),
            ("--config", self.pod.path("config").display().to_string()),
        ];
        let options: Vec<String> =
            options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect();
        self.pod.command(&options, &["sleep", "600"])
    }

    fn start(&self) -> Manager {
        self.pod.spawn(&mut self.command())
    }

    /// The first start is good, and then the manager is killed.
    fn was_running() -> Self {
        let faulty = Self::new();
        let manager = faulty.start();
        let status = manager.until_state("running");
        assert!(
            ErrorCode::ALL.iter().all(|code| error(&status, code.as_str()).is_none()),
            "{status:#}"
        );
        eventually("a journal", || faulty.pod.journal().exists().then_some(()));
        eventually("an answer over TLS", || faulty.answers().then_some(()));
        eventually("a kept certificate", || faulty.kept().exists().then_some(()));
        manager.crash();
        faulty
    }

    fn kept(&self) -> PathBuf {
        self.pod.path("state/tls.json")
    }

    /// The status code of the liveness probe, asked for as the kubelet does: without credentials, and
    /// the certificate is not checked.
    fn livez(&self) -> Option<String> {
        let url = format!("https://127.0.0.1:{}/livez", self.port);
        let curl = Command::new("curl")
            .args(["-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", &url])
            .output()
            .expect("curl");
        String::from_utf8(curl.stdout).ok()
    }

    /// Whether a client with a certificate gets the status.
    fn answers(&self) -> bool {
        self.answers_to(&self.pki)
    }

    fn answers_to(&self, pki: &Pki) -> bool {
        self.status(Credentials { tls: Some(pki.identified()), token: None }).is_ok()
    }

    /// Why a client without a certificate gets no status for a token that is made with this key.
    fn refusal_of(&self, key: &str) -> Option<Code> {
        let grant = Grant {
            subject: "test".into(),
            scopes: Scopes::READ,
            audience: "here".into(),
            ttl: Duration::from_secs(60),
        };
        let token = mint(key.as_bytes(), &grant, SystemTime::now()).expect("a token");
        let token = Some(Token::Text(token));
        match self.status(Credentials { tls: Some(self.pki.tls()), token }) {
            Ok(_) => None,
            Err(ClientError::Refused(refused)) => Some(refused.problem.code),
            Err(other) => panic!("{other}"),
        }
    }

    fn status(&self, credentials: Credentials) -> Result<Answer, ClientError> {
        let address = Address::Url {
            url: format!("https://127.0.0.1:{}", self.port),
            server_name: Some("stayput".into()),
            credentials,
        };
        let client = ManagerClient::new(address).expect("a client");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(client.status())
    }

    fn is_shown(&self, manager: &Manager, code: &str) -> Value {
        let status = manager.until("the engine runs and the fault is shown", |status| {
            status["state"] == "running" && error(status, code).is_some()
        });
        let metrics = manager.get("/metrics").body;
        let metrics = metrics.as_str().expect("text");
        let line = format!("stayput_manager_error{{code=\"{code}\"}} 1");
        assert!(metrics.lines().any(|own| own == line), "{metrics}");
        error(&status, code).expect("just seen").clone()
    }

    fn is_over(&self, manager: &Manager, code: &str) {
        manager.until("the fault is over", |status| error(status, code).is_none());
        eventually("an answer over TLS", || self.answers().then_some(()));
        assert_eq!(manager.status()["starts"], 1, "the engine was not touched");
    }
}

/// How many files of the config are known.
fn files(status: &Value) -> usize {
    status["config"]["files"].as_array().map_or(0, Vec::len)
}

fn error<'a>(status: &'a Value, code: &str) -> Option<&'a Value> {
    status["manager"]["errors"].as_array()?.iter().find(|error| error["code"] == code)
}

#[test] // proves ACCESS-15
fn the_first_start_of_a_pod_refuses_with_all_faults_at_once() {
    let faulty = Faulty::new();
    faulty.pod.write("keys/cert", "none");
    faulty.pod.write("shared", "short");
    let _taken = TcpListener::bind(("127.0.0.1", faulty.port)).expect("it is free");
    let mut manager = faulty.start();
    assert_eq!(manager.ended(), UNAVAILABLE);
    for part in ["keys/cert", "shared", "another process has it"] {
        assert!(manager.log().contains(part), "{part}: {}", manager.log());
    }
    assert!(!faulty.pod.journal().exists());
}

#[test] // proves ACCESS-13, ACCESS-14
fn an_unusable_certificate_does_not_keep_the_engine_down() {
    let faulty = Faulty::was_running();
    let other = Pki::named(&["stayput"]);
    fs::copy(other.file("key"), faulty.pod.path("keys/key")).expect("a copy");
    let manager = faulty.start();
    let fault = faulty.is_shown(&manager, "key_files");
    let message = fault["message"].as_str().unwrap();
    for part in ["not the certificate's", "the last usable certificate is served"] {
        assert!(message.contains(part), "{fault}");
    }
    eventually("the kubelet's probe is answered", || {
        (faulty.livez().as_deref() == Some("200")).then_some(())
    });
    assert_eq!(faulty.refusal_of(SHARED), None, "the key of tokens can be used");
    assert!(!faulty.answers(), "nobody is let in by a certificate");
    fs::copy(faulty.pki.file("key"), faulty.pod.path("keys/key")).expect("a copy");
    faulty.is_over(&manager, "key_files");
}

#[test] // proves ACCESS-14
fn a_volume_of_keys_that_hangs_at_the_start_leaves_the_probes_answered() {
    let faulty = Faulty::was_running();
    // Opening it takes as long as nobody writes.
    fs::remove_file(faulty.pod.path("keys/key")).expect("a key");
    nix::unistd::mkfifo(&faulty.pod.path("keys/key"), nix::sys::stat::Mode::S_IRWXU)
        .expect("a fifo");
    let manager = faulty.start();
    faulty.is_shown(&manager, "key_files");
    eventually("the kubelet's probe is answered", || {
        (faulty.livez().as_deref() == Some("200")).then_some(())
    });
}

#[test] // proves ACCESS-14
fn a_certificate_that_cannot_be_kept_is_no_fault() {
    let faulty = Faulty::new();
    fs::create_dir(faulty.kept()).expect("a directory");
    let manager = faulty.start();
    eventually("an answer over TLS", || faulty.answers().then_some(()));
    eventually("a journal", || faulty.pod.journal().exists().then_some(()));
    eventually("a warning", || manager.log().contains("cannot be kept in").then_some(()));
    manager.crash();
    faulty.pod.write("keys/cert", "none");
    let manager = faulty.start();
    faulty.is_shown(&manager, "key_files");
    assert_eq!(faulty.livez().as_deref(), Some("000"));
}

#[test] // proves ACCESS-13
fn an_unusable_key_of_tokens_leaves_client_certificates_and_the_other_way_round() {
    let faulty = Faulty::was_running();
    faulty.pod.write("shared", "short");
    let manager = faulty.start();
    faulty.is_shown(&manager, "key_files");
    eventually("an answer to a client certificate", || faulty.answers().then_some(()));
    manager.crash();

    faulty.pod.write("shared", SHARED);
    faulty.pod.write("keys/ca", "none");
    let manager = faulty.start();
    let fault = faulty.is_shown(&manager, "key_files");
    assert!(fault["message"].as_str().unwrap().contains("client CA"), "{fault}");
    assert!(!faulty.answers(), "nobody is let in by a certificate");
    fs::copy(faulty.pki.file("ca"), faulty.pod.path("keys/ca")).expect("a copy");
    faulty.is_over(&manager, "key_files");
}

#[test] // proves ACCESS-13
fn an_address_in_use_does_not_keep_the_engine_down() {
    let faulty = Faulty::was_running();
    let taken = TcpListener::bind(("127.0.0.1", faulty.port)).expect("it is free");
    let manager = faulty.start();
    let fault = faulty.is_shown(&manager, "api");
    assert!(fault["message"].as_str().unwrap().contains("another process has it"), "{fault}");
    drop(taken);
    faulty.is_over(&manager, "api");
}

#[test] // proves ACCESS-13
fn a_socket_in_use_does_not_keep_the_engine_down() {
    let faulty = Faulty::was_running();
    let socket = faulty.pod.socket();
    // A crash leaves the file of the socket.
    fs::remove_file(&socket).expect("a socket");
    let taken = UnixListener::bind(&socket).expect("it is free");
    let manager = faulty.start();
    eventually("an answer over TLS", || faulty.answers().then_some(()));
    manager.until_logged("in use by a running process");
    drop(taken);
    let status = manager.until("the fault is over", |status| error(status, "api").is_none());
    assert_eq!(status["starts"], 1);
}

#[test] // proves ACCESS-13
fn a_stopped_engine_can_be_started_although_the_api_has_a_fault() {
    let faulty = Faulty::new();
    let manager = faulty.start();
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    manager.crash();
    faulty.pod.write("keys/cert", "none");
    let manager = faulty.start();
    manager.until_state("stopped");
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    faulty.is_shown(&manager, "key_files");
}

#[test] // proves ACCESS-19
fn without_inotify_instances_everything_works_and_is_read_slowly() {
    limited("without_inotify_instances_everything_works_and_is_read_slowly", "instances");
}

#[test] // proves ACCESS-19
fn without_inotify_watches_everything_works_and_is_read_slowly() {
    limited("without_inotify_watches_everything_works_and_is_read_slowly", "watches");
}

/// Runs a manager in a user namespace that has none of `what` first: it has limits of its own, within
/// those of its parent.
fn limited(test: &str, what: &str) {
    const LIMITED: [&str; 5] = ["unshare", "--user", "--map-root-user", "sh", "-c"];
    let limit = format!("/proc/sys/user/max_inotify_{what}");
    let probe = format!("echo 0 >{limit}");
    if let Err(reason) = can_run(&[&LIMITED[..], &[&probe]].concat()) {
        return skip(&format!("supervise::faults::{test}"), &reason);
    }
    let faulty = Faulty::new();
    let plain = faulty.command();
    let mut command = Command::new(LIMITED[0]);
    command.args(&LIMITED[1..]).arg(format!("echo 0 >{limit}; exec \"$@\"")).arg("sh");
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(faulty.pod.directory());
    // A limit of the node is no mistake of an installation: also the first start works.
    let manager = faulty.pod.spawn(&mut command);
    for code in ["key_watch", "config_watch"] {
        let fault = faulty.is_shown(&manager, code);
        let message = fault["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("max_user_{what}")) && message.contains("30s"),
            "{fault}"
        );
    }
    assert_eq!((faulty.answers(), faulty.refusal_of(SHARED)), (true, None));
    let (other, another) = (Pki::named(&["stayput"]), "another key of thirty-two bytes!");
    fs::copy(other.file("ca"), faulty.pod.path("keys/ca")).expect("a copy");
    faulty.pod.write("shared", another);
    faulty.pod.write("config/jvm.options", "-Xmx1g");
    manager.until("the first change", |status| files(status) == 1);
    eventually("what was taken away lets nobody in", || {
        let refused = faulty.refusal_of(SHARED) == Some(Code::Unauthenticated);
        (refused && !faulty.answers()).then_some(())
    });
    assert_eq!(faulty.refusal_of(another), None);
    for (request, state) in [("stop", "stopped"), ("start", "running")] {
        let answer = manager.post(&format!("/es/{request}?wait=20s"), "{}");
        assert_eq!((answer.code, &answer.body["state"]), (200, &state.into()));
    }
    for code in ["key_watch", "config_watch"] {
        assert!(error(&manager.status(), code).is_some(), "{code}");
    }
    let raise = Command::new("nsenter")
        .args(["--user", "--target", &manager.pid().to_string(), "sh", "-c"])
        .arg(format!("echo 128 >{limit}"))
        .output()
        .expect("nsenter");
    assert!(raise.status.success(), "{raise:?}");
    manager.until("both are watched again", |status| {
        error(status, "key_watch").is_none() && error(status, "config_watch").is_none()
    });
    fs::write(faulty.pod.path("config/elasticsearch.yml"), "a: 1").expect("a file");
    manager.until("the second change", |status| files(status) == 2);
}

#[test] // proves ACCESS-11
fn what_is_mounted_over_keys_and_config_is_seen_by_whoever_asks() {
    let name = "supervise::faults::what_is_mounted_over_keys_and_config_is_seen_by_whoever_asks";
    const OWN_MOUNTS: [&str; 2] = ["unshare", "--mount"];
    if let Err(reason) = can_run(&OWN_MOUNTS) {
        return skip(name, &reason);
    }
    let faulty = Faulty::new();
    faulty.pod.write("config/elasticsearch.yml", "a: 1");
    let plain = faulty.command();
    let mut command = Command::new(OWN_MOUNTS[0]);
    command.args(&OWN_MOUNTS[1..]).arg(plain.get_program()).args(plain.get_args());
    let manager = faulty.pod.spawn(command.current_dir(faulty.pod.directory()));
    let before = manager.until_state("running")["config"]["checksum"].clone();
    eventually("an answer over TLS", || faulty.answers().then_some(()));

    // inotify does not tell about a mount.
    let other = Pki::named(&["stayput"]);
    for directory in ["new/keys", "new/config"] {
        fs::create_dir_all(faulty.pod.path(directory)).expect("a directory");
    }
    for name in ["cert", "key", "ca"] {
        fs::copy(other.file(name), faulty.pod.path(&format!("new/keys/{name}"))).expect("a copy");
    }
    faulty.pod.write("new/config/elasticsearch.yml", "a: 2");
    for directory in ["keys", "config"] {
        let mounted = Command::new("nsenter")
            .args(["--mount", "--target", &manager.pid().to_string(), "mount", "--bind"])
            .args([faulty.pod.path(&format!("new/{directory}")), faulty.pod.path(directory)])
            .output()
            .expect("nsenter");
        assert!(mounted.status.success(), "{mounted:?}");
    }
    manager.until("the config", |status| status["config"]["checksum"] != before);
    let began = Instant::now();
    eventually("the new CA lets its clients in, and the old one nobody", || {
        std::thread::sleep(Duration::from_millis(200));
        (faulty.answers_to(&other) && !faulty.answers()).then_some(())
    });
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
