//! ECK's operator, as a program on this machine.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

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
    /// Installs ECK's definitions, and starts it for the engines' namespace. `Err` names what is missing here.
    pub(super) fn start(fixture: &Fixture) -> Result<Self, String> {
        let (program, definitions) = (part("STAYPUT_ECK")?, part("STAYPUT_CRDS")?);
        let definitions = definitions.join("eck.yaml");
        let admin = fixture.admin();
        // Too large for the annotation that a client-side apply writes.
        admin.run(&["apply", "--server-side", "--filename", utf8(&definitions)]);
        let name = "customresourcedefinition/elasticsearches.elasticsearch.k8s.elastic.co";
        admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
        admin.run(&["create", "namespace", "elastic-system"]);
        let directory = tempfile::tempdir().expect("a temp dir");
        let hosts = directory.path().join("hosts");
        let kubeconfig = format!("KUBECONFIG={}", utf8(admin.kubeconfig()));
        // In a mount namespace of its own: there is no DNS, so it reads the pods' addresses in this file.
        let line = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            "mount --bind \"$0\" /etc/hosts && exec env \"$@\"",
            utf8(&hosts),
            &kubeconfig,
            utf8(&program),
            "manager",
            "--operator-namespace=elastic-system",
            "--namespaces=search",
            "--enable-leader-election=false",
            "--enable-webhook=false",
            "--disable-telemetry",
            "--metrics-port=0",
        ];
        let names = Hosts::write(&hosts, admin.kubeconfig(), in_its_set);
        let line = line.map(str::to_owned).to_vec();
        let mut operator = Self { process: None, line, _hosts: names, directory };
        operator.start_again();
        Ok(operator)
    }

    /// Starts it after it was killed.
    pub(super) fn start_again(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it after it was killed, with these options, too.
    pub(super) fn start_with(&mut self, options: &[&str]) {
        let options = options.iter().map(|option| (*option).to_owned());
        let line: Vec<String> = self.line.iter().cloned().chain(options).collect();
        self.process = Some(Process::start("eck", self.directory.path(), &line));
    }

    /// Sends KILL, and waits for its end.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }
}

/// As ECK asks for a node: by the name that its set's headless Service gives it.
fn in_its_set(pod: &Value) -> Option<String> {
    let set = &pod["metadata"]["labels"]["elasticsearch.k8s.elastic.co/statefulset-name"];
    Some(format!("{}.{}.search", pod["metadata"]["name"].as_str()?, set.as_str()?))
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
