//! Names of the objects.

/// Name of a set's StatefulSet; its pods, and with them the nodes, add `-0`, `-1`…
pub(crate) fn stateful_set(cluster: &str, set: &str) -> String {
    format!("{cluster}-{set}")
}

/// Name of the Secret with a set's config.
pub(crate) fn config_secret(cluster: &str, set: &str) -> String {
    format!("{cluster}-{set}-config")
}

/// Name of the ConfigMap with the names of the first masters.
pub fn bootstrap(cluster: &str) -> String {
    format!("{cluster}-bootstrap")
}

/// Name of the headless Service.
pub(crate) fn service(cluster: &str) -> String {
    format!("{cluster}-nodes")
}

/// The longest name of a StatefulSet: with the hash of a revision, which becomes a label of its
/// pods, it may have 63 characters.
pub const MAX_STATEFUL_SET: usize = 52;

/// True if Kubernetes accepts the text as the name of a Service.
pub(crate) fn is_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.chars().all(fits)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}
