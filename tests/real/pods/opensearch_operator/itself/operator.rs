//! The operator's program, with the account that its chart gives it.

use std::fs;
use std::path::Path;

use kube::config::Kubeconfig;
use serde_json::Value;
use tempfile::TempDir;

use super::super::running::{account, group, groups};
use crate::pods::fixture::Fixture;
use crate::pods::nodes::is_ready;
use crate::pods::operator_program::OperatorProgram;
use crate::support::kubernetes::apiserver::part;

/// Installs the operator's definitions, and starts it for the engines' namespace; its kubeconfig is in `directory`.
/// `Err` names what is missing here.
pub(super) fn start(fixture: &Fixture, directory: &TempDir) -> Result<OperatorProgram, String> {
    let checkout = part("STAYPUT_OPENSEARCH_OPERATOR")?.join("opensearch-operator");
    let program = checkout.join("operator");
    if !program.is_file() {
        return Err(format!("no {}: go build -o operator . makes it", program.display()));
    }
    let definitions = checkout.join("config/crd/bases");
    let admin = fixture.admin();
    // Too large for the annotation that a client-side apply writes.
    admin.run(&["apply", "--server-side", "--filename", utf8(&definitions)]);
    let names = ["opensearchclusters.opensearch.org", "opensearchclusters.opensearch.opster.io"];
    for name in names.map(|name| format!("customresourcedefinition/{name}")) {
        admin.run(&["wait", "--for=condition=Established", "--timeout=60s", &name]);
    }
    let group = format!("--group={}", group());
    let role = ["create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin"];
    admin.run(&[&role[..], &[&group]].concat());
    let own = directory.path().join("kubeconfig");
    fs::write(&own, kubeconfig(admin.kubeconfig())).expect("a file");
    let kubeconfig = format!("KUBECONFIG={}", utf8(&own));
    let line = [
        &kubeconfig,
        // Its init container is of an image that is not here: it gives the data to the engine's user.
        "SKIP_INIT_CONTAINER=true",
        utf8(&program),
        "--enable-webhooks=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--watch-namespace=search",
    ];
    Ok(OperatorProgram::start("operator", admin.kubeconfig(), service, &line))
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
    is_ready(pod).then(|| "logs.search.svc.cluster.local".to_owned())
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
