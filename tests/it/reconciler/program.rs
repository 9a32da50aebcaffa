//! The program as it is deployed: options, endpoints, the Lease, its end.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use nix::sys::signal::Signal;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, Reconciler};
use super::objects::{NAMESPACE, eventually, search_cluster};
use crate::support::metrics::served;
use crate::support::ports::free_loopback_port;
use crate::support::programs::send;

/// A running `stayput-reconciler`; killed when dropped.
pub(super) struct Program {
    child: Child,
    port: u16,
}

impl Program {
    pub(super) fn start(kubeconfig: &Path, name: &str) -> Self {
        let port = free_loopback_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stayput-reconciler"));
        command
            .args(["run", "--log-format", "text", "--own-namespace", NAMESPACE])
            .args(["--own-name", name, "--listen", &format!("127.0.0.1:{port}")])
            .args(["--snapshots", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        Self { child: command.spawn().expect("it can be executed"), port }
    }

    pub(super) async fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    pub(super) async fn until_ready(&self) {
        eventually("it is ready", async || {
            self.get("/readyz").await.filter(|(status, _)| *status == 200)
        })
        .await;
    }

    /// Waits until its metrics have this line.
    pub(super) async fn until_metric(&self, line: &str) {
        eventually(line, async || {
            let (_, metrics) = self.get("/metrics").await.filter(|(status, _)| *status == 200)?;
            metrics.lines().any(|one| one == line).then_some(())
        })
        .await;
    }

    /// The most memory that it has had at one time, in KiB.
    pub(super) fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.split_whitespace().next());
        kib.and_then(|kib| kib.parse().ok()).expect("a number")
    }

    /// Sends TERM, and waits for its end.
    pub(super) async fn end(mut self) -> Option<i32> {
        send(self.child.id(), Signal::SIGTERM);
        let ended = async || self.child.try_wait().expect("our own child");
        eventually("it ends", ended).await.code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nothing else is served than what alerts and dashboards are checked against.
fn only_what_is_written_down(metrics: &str) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/proto/metrics/reconciler.txt");
    let known = served(&std::fs::read_to_string(file).expect("a file"));
    let served = served(metrics);
    assert!(served.len() > 12, "{metrics}");
    for (name, labels) in served {
        assert_eq!(known.get(&name), Some(&labels), "{name}");
    }
}

#[tokio::test] // proves UPDATE-33, OPERATE-8
async fn of_two_programs_one_works_and_the_other_takes_over() {
    let fixture = Fixture::new("").await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let first = Program::start(&kubeconfig, "first");
    first.until_ready().await;
    let holder = async || {
        let lease = fixture.api::<Lease>().get("stayput-reconciler").await.ok()?;
        lease.spec?.holder_identity
    };
    let held_by = async |name: &str| {
        eventually(&format!("the Lease is {name}'s"), async || {
            holder().await.filter(|holder| holder == name)
        })
        .await;
    };
    held_by("first").await;
    fixture.until_seen().await;
    let second = Program::start(&kubeconfig, "second");
    second.until_ready().await;
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    assert_eq!(holder().await.as_deref(), Some("first"));
    for line in [
        "stayput_restarts_total{outcome=\"done\",strategy=\"rolling\"} 1",
        "stayput_restart_phase_seconds_count{phase=\"stop\",strategy=\"rolling\"} 3",
        "stayput_restart_phase_seconds_count{phase=\"start\",strategy=\"rolling\"} 3",
        "stayput_updated_nodes_total{step=\"restart\"} 3",
        "stayput_pending_restart{cluster=\"default/logs\"} 0",
        "stayput_debts{cluster=\"default/logs\"} 0",
        "stayput_requests_total{to=\"manager\",kind=\"stop\",outcome=\"ok\"} 3",
        "stayput_conflicts_total 0",
        "stayput_leader 1",
    ] {
        first.until_metric(line).await;
    }
    let (_, metrics) = first.get("/metrics").await.expect("an answer");
    only_what_is_written_down(&metrics);
    assert_eq!(first.get("/livez").await, Some((200, "ok\n".into())));
    assert_eq!(first.get("/nothing").await.map(|(status, _)| status), Some(404));
    let (_, metrics) = second.get("/metrics").await.expect("an answer");
    assert!(!metrics.contains("to=\"manager\""), "{metrics}");
    assert!(metrics.contains("\nstayput_leader 0\n"), "{metrics}");
    assert_eq!(first.end().await, Some(0));
    held_by("second").await;
    let entry = fixture.restart("r2", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    assert_eq!(second.end().await, Some(0));
}

#[tokio::test]
async fn a_searchcluster_that_is_deleted_goes_once_nothing_is_owed() {
    let fixture = Fixture::new("standin.stop_delay_ms: 500").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture
        .until("a node is under way", |cluster| {
            let status = cluster.status.as_ref();
            let restart = status.and_then(|status| status.ledger.restart.as_ref());
            restart.is_some_and(|restart| restart.members.iter().any(|one| one.is_under_way()))
        })
        .await;
    let api = fixture.api::<SearchCluster>();
    api.delete("logs", &kube::api::DeleteParams::default()).await.expect("it is taken");
    eventually("it is gone", async || {
        api.get_opt("logs").await.expect("an answer").is_none().then_some(())
    })
    .await;
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    let settings = fixture.engine_until("/_cluster/settings?flat_settings=true").await;
    assert_eq!(settings["persistent"], serde_json::json!({}));
    // A new one of the same name is reconciled again.
    fixture.create::<SearchCluster>(search_cluster(true)).await;
    fixture.until_seen().await;
    let entry = fixture.restart("r2", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    tokio::time::timeout(Duration::from_secs(30), reconciler.end()).await.expect("it ends");
}
