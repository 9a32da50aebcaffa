//! ECK's operator makes pods from what we write for it. There is no kubelet: what it would refuse is
//! checked by its rule.

use std::time::Duration;

use serde_json::{Value, json};

use super::operators::{example, injected};
use crate::support::kubernetes::apiserver::{ApiServer, part};
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::kubernetes::process::Process;

/// On a busy machine. On an idle one the operator needs five seconds.
const TIMEOUT: Duration = Duration::from_secs(120);

/// `Err` names what is missing here. Needs ECK's definitions, and the namespace `search`.
pub(super) fn makes_pods_that_start(server: &ApiServer) -> Result<(), String> {
    let program = part("STAYPUT_ECK")?;
    let admin = server.admin();
    let restricted = "pod-security.kubernetes.io/enforce=restricted";
    admin.run(&["label", "namespace", "search", restricted, "--overwrite"]);
    let kubeconfig = format!("KUBECONFIG={}", admin.kubeconfig().display());
    let line = [
        "env",
        &kubeconfig,
        program.to_str().expect("UTF-8"),
        "manager",
        "--operator-namespace=stayput",
        "--namespaces=search",
        "--enable-leader-election=false",
        "--enable-webhook=false",
        "--disable-telemetry",
        "--metrics-port=0",
    ];
    let mut operator = Process::start("eck", server.directory(), &line);
    for (name, manifest) in [("example", example()), ("injected", injected())] {
        let manifest =
            manifest.replace("name: logs, namespace", &format!("name: {name}, namespace"));
        let manifest = manifest.replace("\n  name: logs\n", &format!("\n  name: {name}\n"));
        admin.attempt(&["apply", "--filename", "-"], &manifest).expect("it is taken");
        let label = format!("elasticsearch.k8s.elastic.co/cluster-name={name}");
        let get = ["get", "statefulsets", "--namespace", "search", "--selector", &label];
        let sets = operator.until("ECK has made a StatefulSet", TIMEOUT, || {
            let sets = admin.json(&get)["items"].as_array().cloned().unwrap_or_default();
            (!sets.is_empty()).then_some(sets)
        });
        for set in &sets {
            let spec = &set["spec"]["template"]["spec"];
            let ours = container(spec, "stayput");
            assert!(ours.is_some(), "no init container of ours: {spec:#}");
            is_admitted(admin, spec);
            starts(spec);
        }
    }
    Ok(())
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let of = |list: &str| spec[list].as_array().map(Vec::as_slice).unwrap_or_default();
    of("initContainers").iter().chain(of("containers"))
}

fn container<'a>(spec: &'a Value, name: &str) -> Option<&'a Value> {
    containers(spec).find(|container| container["name"] == name)
}

/// The apiserver, with PodSecurity `restricted`, accepts a pod of this spec.
fn is_admitted(admin: &Kubectl, spec: &Value) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "one", "namespace": "search" },
        "spec": spec,
    });
    let dry = ["create", "--dry-run=server", "--warnings-as-errors", "--filename", "-"];
    admin.attempt(&dry, &pod.to_string()).unwrap_or_else(|why| panic!("{why}\n{spec:#}"));
}

/// The kubelet does not start a container with `runAsNonRoot` whose image runs as root, or as a user that
/// has only a name, unless `runAsUser` is set.
fn starts(spec: &Value) {
    let pod = &spec["securityContext"];
    for container in containers(spec) {
        let own = &container["securityContext"];
        let is_set =
            |field: &str| [&own[field], &pod[field]].into_iter().find(|value| !value.is_null());
        let non_root = is_set("runAsNonRoot").is_some_and(|value| value == true);
        let user = is_set("runAsUser").and_then(Value::as_u64);
        // Elasticsearch's image runs as user 1000, ours as none.
        let image = container["image"].as_str().expect("an image");
        let image_user = image.contains("/elasticsearch:").then_some(1000);
        let runs_as = user.or(image_user).unwrap_or(0);
        assert!(!non_root || runs_as != 0, "{} does not start: {container:#}", container["name"]);
    }
}
