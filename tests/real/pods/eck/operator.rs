//! ECK's operator, as a program on this machine.

use std::path::Path;

use tempfile::TempDir;

use super::hosts::Hosts;
use crate::pods::fixture::Fixture;
use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::process::Process;

/// A running operator; it ends when this is dropped.
pub(super) struct Operator {
    _process: Process,
    _hosts: Hosts,
    _directory: TempDir,
}

impl Operator {
    /// Installs ECK's definitions, and starts it for the engines' namespace; the namespace `stayput` is its own.
    /// `Err` names what is missing here.
    pub(super) fn start(fixture: &Fixture) -> Result<Self, String> {
        let (program, definitions) = (part("STAYPUT_ECK")?, part("STAYPUT_CRDS")?);
        let definitions = definitions.join("eck.yaml");
        let admin = fixture.admin();
        // Too large for the annotation that a client-side apply writes.
        admin.run(&["apply", "--server-side", "--filename", utf8(&definitions)]);
        let name = "customresourcedefinition/elasticsearches.elasticsearch.k8s.elastic.co";
        admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
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
            "--operator-namespace=stayput",
            "--namespaces=search",
            "--enable-leader-election=false",
            "--enable-webhook=false",
            "--disable-telemetry",
            "--metrics-port=0",
        ];
        let names = Hosts::write(&hosts, admin.kubeconfig());
        let process = Process::start("eck", directory.path(), &line);
        Ok(Self { _process: process, _hosts: names, _directory: directory })
    }
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
