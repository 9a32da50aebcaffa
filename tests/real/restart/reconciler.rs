//! The shipped `stayput-reconciler`, by its command line and a kubeconfig.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fixture::ACCOUNT;
use crate::support::curl::Curl;
use crate::support::kubernetes::client::NAMESPACE;
use crate::support::kubernetes::process::Process;
use crate::support::ports::free_loopback_port;
use crate::support::programs;
use stayput_standin::harness::recorder::Recorder;

/// The longest time for a start on a busy machine.
const RECONCILER_START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running reconciler; ends with its guard.
pub(crate) struct Reconciler {
    process: Process,
    line: Vec<String>,
    logs: PathBuf,
    port: u16,
    _recorder: Option<Recorder>,
}

impl Reconciler {
    /// Starts it and waits until it watches the namespace.
    pub(crate) fn start(kubeconfig: &Path, logs: &Path) -> Self {
        let port = free_loopback_port();
        let (namespace, account) = ACCOUNT;
        let program = programs::reconciler();
        let mut line = [
            program.to_str().expect("UTF-8"),
            "run",
            "--kubeconfig",
            kubeconfig.to_str().expect("UTF-8"),
            "--namespace",
            NAMESPACE,
            "--own-namespace",
            namespace,
            "--service-account",
            account,
            // Otherwise the Lease of a killed process would have to expire first.
            "--no-election",
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--log-format",
            "text",
            "--log-level",
            "info",
        ]
        .map(str::to_owned)
        .to_vec();
        let recorder = Recorder::start("real", NAMESPACE, "logs", Duration::from_millis(250));
        if let Some(recorder) = &recorder {
            line.extend(["--snapshots".to_owned(), recorder.address.to_string()]);
        }
        let process = Process::start("stayput-reconciler", logs, &line);
        let mut reconciler =
            Self { process, line, logs: logs.to_owned(), port, _recorder: recorder };
        reconciler.until_ready();
        reconciler
    }

    fn until_ready(&mut self) {
        let ready = format!("http://127.0.0.1:{}/readyz", self.port);
        self.process.until("it is ready", RECONCILER_START_TIMEOUT, || {
            let asked = std::process::Command::new("curl")
                .args(["--silent", "--fail", "--output", "/dev/null", &ready])
                .status();
            asked.is_ok_and(|status| status.success()).then_some(())
        });
    }

    /// KILL: as when the machine fails or memory runs out.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Another process with the same command line.
    pub(crate) fn start_again(&mut self) {
        self.process.kill();
        self.process = Process::start("stayput-reconciler", &self.logs, &self.line);
        self.until_ready();
    }

    /// How many writes of this process the apiserver has accepted, by kind. Events are counted
    /// separately.
    pub(crate) fn writes(&self) -> Vec<(String, u64)> {
        let answer = Curl::plain(self.port).get("/metrics").expect(200);
        let text = answer.as_str().expect("text");
        let ours = |line: &str| {
            let (labels, value) = line.strip_prefix("stayput_requests_total{")?.split_once("} ")?;
            let is_write = [
                "patch_searchclusters_status",
                "update_searchclusters_status",
                "patch_searchclusters",
                "patch_pods",
            ]
            .into_iter()
            .find(|kind| {
                labels.contains("to=\"apiserver\"") && labels.contains(&format!("\"{kind}\""))
            });
            let value = value.parse().expect("a number");
            Some((is_write.filter(|_| labels.contains("outcome=\"ok\""))?.to_owned(), value))
        };
        text.lines().filter_map(ours).collect()
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        let log = self.logs.join("stayput-reconciler.log");
        String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
    }
}
