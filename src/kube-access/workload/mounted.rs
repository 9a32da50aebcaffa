//! Reads the Secrets that a pod mounts, and finds out if a manager runs in it.

use k8s_openapi::api::core::v1::Pod;

/// Variable by which a manager knows its pod. Nobody can add it to a living pod.
const POD_UID: &str = "STAYPUT_POD_UID";

/// True if a manager runs in a pod: its author wants it to be restarted from here. The policies of `deploy/`
/// check the same.
pub fn runs_manager(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == POD_UID)
}

/// The Secrets that a pod mounts.
pub fn mounted_secrets(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.flat_map(|volume| {
        let direct = volume.secret.as_ref().and_then(|secret| secret.secret_name.as_deref());
        let parts =
            volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        let projected =
            parts.filter_map(|part| part.secret.as_ref().map(|secret| secret.name.as_str()));
        direct.into_iter().chain(projected)
    })
}
