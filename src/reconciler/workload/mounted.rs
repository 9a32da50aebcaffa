//! What a pod mounts.

use k8s_openapi::api::core::v1::Pod;

/// The Secrets that a pod mounts.
pub(crate) fn mounted_secrets(pod: &Pod) -> impl Iterator<Item = &str> {
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
