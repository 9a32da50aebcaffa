//! ECK's operator, as a program on this machine.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::pods::fixture::Fixture;
use crate::pods::operator_program::OperatorProgram;
use crate::support::kubernetes::apiserver::part;

/// Installs ECK's definitions, and starts its operator for the engines' namespace. `Err` names what is missing here.
pub(super) fn start(fixture: &Fixture) -> Result<OperatorProgram, String> {
    let (program, definitions) = (part("STAYPUT_ECK")?, part("STAYPUT_CRDS")?);
    fixture.admin().run(&["create", "namespace", "elastic-system"]);
    Ok(run(fixture, &program, &definitions.join("eck.yaml")))
}

/// The program and the definitions of a newer ECK. `Err` names what is missing here.
pub(super) fn newer() -> Result<[PathBuf; 2], String> {
    let checkout = part("STAYPUT_ECK_NEWER")?;
    let program = checkout.join("eck");
    if !program.is_file() {
        return Err(format!(
            "no {}: CGO_ENABLED=0 go build -o eck ./cmd makes it",
            program.display()
        ));
    }
    Ok([program, checkout.join("config/crds/v1/all-crds.yaml")])
}

/// Installs these definitions and starts this program, as an installation or an upgrade does.
pub(super) fn run(fixture: &Fixture, program: &Path, definitions: &Path) -> OperatorProgram {
    let admin = fixture.admin();
    // Too large for the annotation that a client-side apply writes.
    admin.run(&["apply", "--server-side", "--filename", utf8(definitions)]);
    let name = "customresourcedefinition/elasticsearches.elasticsearch.k8s.elastic.co";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
    let kubeconfig = format!("KUBECONFIG={}", utf8(admin.kubeconfig()));
    let line = [
        &kubeconfig,
        utf8(program),
        "manager",
        "--operator-namespace=elastic-system",
        "--namespaces=search",
        "--enable-leader-election=false",
        "--enable-webhook=false",
        "--disable-telemetry",
        "--metrics-port=0",
    ];
    OperatorProgram::start("eck", admin.kubeconfig(), in_its_set, &line)
}

/// As ECK asks for a node: by the name that its set's headless Service gives it.
fn in_its_set(pod: &Value) -> Option<String> {
    let set = &pod["metadata"]["labels"]["elasticsearch.k8s.elastic.co/statefulset-name"];
    Some(format!("{}.{}.search", pod["metadata"]["name"].as_str()?, set.as_str()?))
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
