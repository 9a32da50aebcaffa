//! Paths in a container.

/// A path without a slash at its end, and without empty parts and `.`, so that equal places have equal
/// texts. The root is empty.
pub(crate) fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.map(|part| format!("/{part}")).collect()
}

/// True if a plain path is this plain directory, or below it.
pub(crate) fn is_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
