//! The operator's program, as a process on this machine with the account that its chart gives it.

use std::fs;
use std::path::Path;

use kube::config::Kubeconfig;
use serde_json::Value;
use tempfile::TempDir;

use super::super::running::{account, group, groups};
use crate::pods::fixture::Fixture;
use crate::pods::hosts::Hosts;
use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::process::Process;

/// An operator that runs, or was killed; it ends when this is dropped.
pub(super) struct Operator {
    process: Option<Process>,
    line: Vec<String>,
    _hosts: Hosts,
    directory: TempDir,
}

impl Operator {
    /// Installs its definitions, and starts it for the engines' namespace. `Err` names what is missing here.
    pub(super) fn start(fixture: &Fixture) -> Result<Self, String> {
        let checkout = part("STAYPUT_OPENSEARCH_OPERATOR")?.join("opensearch-operator");
        let program = checkout.join("operator");
        if !program.is_file() {
            return Err(format!("no {}: go build -o operator . makes it", program.display()));
        }
        let definitions = checkout.join("config/crd/bases");
        let admin = fixture.admin();
        // Too large for the annotation that a client-side apply writes.
        admin.run(&["apply", "--server-side", "--filename", utf8(&definitions)]);
        let names =
            ["opensearchclusters.opensearch.org", "opensearchclusters.opensearch.opster.io"];
        for name in names.map(|name| format!("customresourcedefinition/{name}")) {
            admin.run(&["wait", "--for=condition=Established", "--timeout=60s", &name]);
        }
        let group = format!("--group={}", group());
        admin.run(&[
            "create",
            "clusterrolebinding",
            "operator",
            "--clusterrole=cluster-admin",
            &group,
        ]);
        let directory = tempfile::tempdir().expect("a temp dir");
        let (hosts, own) = (directory.path().join("hosts"), directory.path().join("kubeconfig"));
        fs::write(&own, kubeconfig(admin.kubeconfig())).expect("a file");
        let names = Hosts::write(&hosts, admin.kubeconfig(), service);
        let kubeconfig = format!("KUBECONFIG={}", utf8(&own));
        // In a mount namespace of its own: there is no DNS, so it reads the addresses in this file.
        let line = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            "mount --bind \"$0\" /etc/hosts && exec env \"$@\"",
            utf8(&hosts),
            &kubeconfig,
            // Its init container is of an image that is not here: it gives the data to the engine's user.
            "SKIP_INIT_CONTAINER=true",
            utf8(&program),
            "--enable-webhooks=false",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--watch-namespace=search",
        ];
        let line = line.map(str::to_owned).to_vec();
        let mut operator = Self { process: None, line, _hosts: names, directory };
        operator.start_again();
        Ok(operator)
    }

    /// Starts it after it was killed.
    pub(super) fn start_again(&mut self) {
        self.process = Some(Process::start("operator", self.directory.path(), &self.line));
    }

    /// Sends KILL, and waits for its end.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }
}

/// The same with the operator's account.
fn kubeconfig(admin: &Path) -> String {
    let mut config = Kubeconfig::read_from(admin).expect("a kubeconfig");
    for user in &mut config.auth_infos {
        let info = user.auth_info.as_mut().expect("a user");
        info.impersonate = Some(account());
        info.impersonate_groups = Some(groups().into());
    }
    serde_json::to_string(&config).expect("JSON")
}

/// As a Service has them: pods that are ready.
fn service(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    conditions.into_iter().any(is_ready).then(|| "logs.search.svc.cluster.local".to_owned())
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
