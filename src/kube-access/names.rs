//! Names of objects, and random ids of requests.

use ring::rand::{SecureRandom, SystemRandom};

/// The reconciler, as `deploy/` installs it.
pub mod reconciler {
    /// Name of the reconciler: of its service account, Lease and label, and in managed fields, events and tokens.
    pub const NAME: &str = "stayput-reconciler";
    /// Namespace of the reconciler.
    pub const NAMESPACE: &str = "stayput";
    /// Namespace and name of the service account.
    pub const ACCOUNT: &str = "stayput:stayput-reconciler";

    /// A RoleBinding that gives the reconciler the rights of a ClusterRole in one namespace.
    #[derive(Debug, Clone, Copy)]
    pub struct Rights {
        pub binding: &'static str,
        pub cluster_role: &'static str,
    }

    /// The rights to restart clusters.
    pub const RESTARTS: Rights = Rights { binding: "stayput-clusters", cluster_role: NAME };
    /// The rights to make the nodes of declared clusters.
    pub const MAKES: Rights =
        Rights { binding: "stayput-declared", cluster_role: "stayput-reconciler-declared" };
}

/// Name of `kubectl stayput` in managed fields.
pub const KUBECTL: &str = "kubectl-stayput";

/// True if an object of the apiserver can have this name (a DNS subdomain). A name in a pod or from a person
/// need not be one, and nothing else may get into an address.
pub fn is_object_name(text: &str) -> bool {
    let known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'.';
    let ends = |c: Option<&u8>| c.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 253
        && bytes.iter().copied().all(known)
        && ends(bytes.first())
        && ends(bytes.last())
}

/// Error: the operating system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random numbers")]
pub struct NoRandomNumbers;

/// Twelve random hexadecimal digits. Two requests with the same id would count as one.
pub fn random_id() -> Result<String, NoRandomNumbers> {
    random_hex::<6>()
}

/// `BYTES` random bytes, each as two hexadecimal digits.
pub fn random_hex<const BYTES: usize>() -> Result<String, NoRandomNumbers> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::is_object_name;

    #[test]
    fn nothing_but_a_name_gets_into_an_address() {
        for name in ["logs", "logs-es-elastic-user", "a.b-1", &"x".repeat(253)] {
            assert!(is_object_name(name), "{name}");
        }
        for other in
            ["", ".", "..", "../secrets/x", "a/b", "a?limit=1", "a%2fb", "A", &"x".repeat(254)]
        {
            assert!(!is_object_name(other), "{other}");
        }
    }
}
