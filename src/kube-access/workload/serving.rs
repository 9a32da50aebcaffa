//! The Secret with the certificate that a manager serves.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use stayput_pod_update::manager_option;

use super::{ContainerFacts, DEFAULT_CONTAINER, engine_container};

/// Name of the Secret, found from `--tls-cert` and the volumes of the pod, if it is written there.
pub fn serving_secret(pod: &Pod, manager_port: u16) -> Option<String> {
    let containers = ContainerFacts::of(pod);
    let default = pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str);
    let name = engine_container(&containers, manager_port, default);
    let spec = json!(pod.spec);
    let list = |at: &Value, field: &str| at[field].as_array().cloned().unwrap_or_default();
    let container = list(&spec, "containers").into_iter().find(|one| one["name"] == name)?;
    let file = manager_option(&container, "tls-cert").ok()?.pop()?;
    let (directory, _) = file.rsplit_once('/')?;
    let is_there = |mount: &&Value| {
        mount["mountPath"].as_str().is_some_and(|path| path.trim_end_matches('/') == directory)
    };
    let mounts = list(&container, "volumeMounts");
    let mount = mounts.iter().find(is_there)?;
    let volume = list(&spec, "volumes").into_iter().find(|one| one["name"] == mount["name"])?;
    volume["secret"]["secretName"].as_str().map(str::to_owned)
}
