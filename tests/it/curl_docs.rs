//! Runs every `sh` block of `docs/curl.md`, in order, against a live manager. Those in a cluster are run by
//! `tests/real/pods/five_commands.rs`.
//!
//! It needs curl, openssl and coreutils, and a manager with a readiness probe, staging and last
//! good, both listeners, and shared-key tokens that are bound to the pod.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::ports::free_loopback_port;
use crate::support::program::{finish, stayput};
use crate::support::wait::eventually;

const NAMESPACE: &str = "search";
const POD: &str = "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a";

/// A block of the document: the heading it is under, and its text.
#[derive(Debug)]
struct Block {
    heading: String,
    script: String,
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/curl.md");
    fs::read_to_string(path).expect("the document is there")
}

/// All `sh` blocks, in order.
fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut heading = "";
    let mut open = false;
    for line in document.lines() {
        match (open, line) {
            (false, "```sh") => {
                open = true;
                blocks.push(Block { heading: heading.to_owned(), script: String::new() });
            }
            (true, "```") => open = false,
            (true, _) => {
                let block = blocks.last_mut().expect("the open one");
                block.script.push_str(line);
                block.script.push('\n');
            }
            (false, _) => heading = line.strip_prefix("## ").unwrap_or(heading),
        }
    }
    assert!(!open, "the last block is not closed");
    blocks.retain(|block| block.heading != "In a cluster");
    blocks
}

/// A part of what a block must print.
fn expected(block: &Block) -> &'static str {
    let has = |part: &str| block.script.contains(part);
    match block.heading.as_str() {
        "Status" if has("after=") => "204\n",
        "Status" => "\"state\":\"running\"",
        "Stop" if has("resumeAfter") => "\"resume\":{\"at\":\"",
        "Stop" => "\"desired\":\"stopped\",\"state\":\"stopped\"",
        "Wait" => "",
        "Checksum" => "\"checksum\":\"sha256:",
        "Start" if has("wrong") => "\n412\n",
        "Start" => "\"desired\":\"running\",\"state\":\"running\"",
        "Not ready, ahead of a stop" => "\"ready\":false",
        "Restart" if has("last_good") => "\"config\":\"last_good\"",
        "Restart" => "\n409\n",
        "Upgrade" => "200\n",
        "Over TLS" if has("TOKEN") && has("stop") => "\"state\":\"stopped\"",
        "Over TLS" if has("TOKEN") => "\"state\":\"running\"",
        "Over TLS" => "\n401\n",
        "Probes and metrics" if has("metrics") => "stayput_",
        "Probes and metrics" => "",
        "Tokens" => "\"state\":\"running\"",
        other => panic!("no output is defined for blocks under {other:?}"),
    }
}

#[test]
fn the_document_has_a_block_for_each_command() {
    let document = document();
    let blocks = blocks(&document);
    for heading in ["Status", "Stop", "Wait", "Checksum", "Start", "Restart", "Tokens"] {
        assert!(blocks.iter().any(|block| block.heading == heading), "{heading}");
    }
    for block in &blocks {
        expected(block);
        let checked = Command::new("sh").args(["-n", "-c", &block.script]).status();
        assert!(checked.expect("sh").success(), "no shell script:\n{}", block.script);
        for word in block.script.split('$').skip(1) {
            let word = word.trim_start_matches('{');
            let end = word.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(word.len());
            let listed = document.contains(&format!("| `{}` |", &word[..end]));
            assert!(end == 0 || listed, "${} is not in the table of variables", &word[..end]);
        }
    }
}

/// A manager with everything that the document uses. Ends when this is dropped.
#[allow(clippy::disallowed_types, reason = "the ban is for the manager, which has one waiter")]
struct Manager {
    dir: TempDir,
    process: std::process::Child,
    port: u16,
    // Answers the readiness probe, as the engine would.
    _engine_port: TcpListener,
}

impl Manager {
    fn start() -> Self {
        let dir = TempDir::new().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        for name in ["state", "mount", "config"] {
            fs::create_dir(path(name)).expect("a directory");
        }
        fs::write(path("mount/elasticsearch.yml"), "node.name: logs-2\n").expect("a file");
        fs::write(path("key"), format!("{}\n", "5e".repeat(32))).expect("a file");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        fs::write(path("cert.pem"), cert.pem()).expect("a file");
        fs::write(path("key.pem"), signing_key.serialize_pem()).expect("a file");
        let engine_port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let probe = format!("tcp://{}", engine_port.local_addr().expect("an address"));
        let port = free_loopback_port();
        let options: [(&str, PathBuf); 9] = [
            ("--socket", path("s")),
            ("--state-dir", path("state")),
            ("--config", path("mount")),
            ("--tls-cert", path("cert.pem")),
            ("--tls-key", path("key.pem")),
            ("--jwt-key", path("key")),
            ("--listen", format!("127.0.0.1:{port}").into()),
            ("--ready", probe.into()),
            ("--stage", format!("{}={}", path("mount").display(), path("config").display()).into()),
        ];
        let mut command = stayput(["run", "--keep-last-good"]);
        for (name, value) in options {
            command.arg(name).arg(value);
        }
        let process = command
            .args(["--", "sleep", "1000"])
            .envs([("STAYPUT_POD_NAMESPACE", NAMESPACE), ("STAYPUT_POD_UID", POD)])
            .stderr(Stdio::inherit())
            .spawn()
            .expect("stayput can be executed");
        let manager = Self { dir, process, port, _engine_port: engine_port };
        manager.await_ready();
        manager
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn await_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let mut wait = stayput(["wait", "--for", "ready", "--timeout", "30s", "--socket"]);
            let ended = finish(wait.arg(self.path("s")));
            match ended.code {
                0 => return,
                // Not listening yet.
                2 if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                _ => panic!("the manager is not ready: {ended:?}"),
            }
        }
    }

    fn until_journal_is_written(&self) {
        eventually("its journal is written", || {
            let mut status = stayput(["status", "--json", "--socket"]);
            let ended = finish(status.arg(self.path("s")));
            let status: Value = serde_json::from_str(&ended.stdout).ok()?;
            (status["manager"]["durable"] == true).then_some(())
        });
    }

    fn audience() -> String {
        format!("stayput:{NAMESPACE}/{POD}")
    }

    fn token(&self) -> String {
        let audience = Self::audience();
        let mut command =
            stayput(["token", "--scope", "control", "--audience", &audience, "--key"]);
        let ended = finish(command.arg(self.path("key")));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout.trim().to_owned()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // TERM, so that its engine ends, too.
        let pid = i32::try_from(self.process.id()).map(Pid::from_raw);
        if pid.is_ok_and(|pid| kill(pid, Signal::SIGTERM).is_ok()) {
            let _ = self.process.wait();
        }
    }
}

#[test] // proves ACCESS-23
fn every_block_does_what_the_document_says() {
    let manager = Manager::start();
    let token = manager.token();
    for block in blocks(&document()) {
        // As a person who types it: by then what was done before is written down.
        manager.until_journal_is_written();
        let output = Command::new("sh")
            .args(["-eu", "-c", &block.script])
            .env("SOCKET", manager.path("s"))
            .env("URL", format!("https://127.0.0.1:{}", manager.port))
            .env("CA", manager.path("cert.pem"))
            .env("TOKEN", &token)
            .env("KEY", manager.path("key"))
            .env("AUDIENCE", Manager::audience())
            .env("CONFIG", manager.path("mount"))
            .stdin(Stdio::null())
            .output()
            .expect("sh");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let printed = format!("{}\n{}\n---\n{stdout}\n{stderr}", block.heading, block.script);
        assert!(output.status.success(), "{}: {printed}", output.status);
        assert!(stdout.contains(expected(&block)), "{:?} expected: {printed}", expected(&block));
    }
}
