//! Versions of objects of the apiserver.

/// True if an object of this version is later than one that was read. Versions of one kind of object grow,
/// and the cache of an apiserver may be behind the object that was read. Versions that are no numbers cannot
/// be compared: a different one counts as later.
pub(super) fn is_later(version: &str, read: &str) -> bool {
    match (version.parse::<u64>(), read.parse::<u64>()) {
        (Ok(version), Ok(read)) => version > read,
        _ => version != read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_anything_else_is_another_version() {
        assert!(is_later("10", "9") && !is_later("9", "10") && !is_later("9", "9"));
        assert!(is_later("b", "a") && is_later("a", "b") && !is_later("a", "a"));
    }
}
