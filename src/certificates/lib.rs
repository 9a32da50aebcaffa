//! The certificates of managers and the keys that they check tokens with: what to make or renew
//! now, and how. Nothing here reads a clock, a file or the network; new keys are random.
//!
//! * [`decide`]: from [`CertificateFacts`] about the certificates to the next [`Step`].
//! * [`issue`]: makes and reads certificates and keys.
//! * [`key_set`]: which public keys of the apiserver managers are to have.
//! * [`names`]: the objects that certificates and keys are kept in.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod decide;
pub mod issue;
pub mod key_set;

pub use decide::{
    Authority, CertificateFacts, Decision, Existing, Id, Problem, Serving, Step, decide,
};

/// The objects that certificates and keys are kept in.
pub mod names {
    /// Label, and its value, of the objects that we made and may change.
    pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stayput");

    pub use stayput_pod_spec::KEY_SET;

    /// The Secrets of one cluster.
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct SecretNames {
        /// Namespace of the cluster.
        pub namespace: String,
        /// Name of the cluster.
        pub cluster: String,
        /// The Secret with the CA's own certificate and key. No pod mounts it.
        pub authority: String,
        /// The Secret with the CAs that managers are checked with.
        pub trusted: String,
        /// The Secret with the certificate and the key of the managers.
        pub serving: String,
    }

    impl SecretNames {
        /// Names as `kubectl stayput init` makes them.
        pub fn of(namespace: &str, cluster: &str) -> Self {
            Self {
                namespace: namespace.to_owned(),
                cluster: cluster.to_owned(),
                authority: format!("{cluster}-manager-ca-key"),
                trusted: format!("{cluster}-manager-ca"),
                serving: stayput_pod_spec::certificate_secret(cluster),
            }
        }

        /// Namespace and name of the cluster, for commands.
        pub(crate) fn owner(&self) -> (String, String) {
            (self.namespace.clone(), self.cluster.clone())
        }

        /// The Role, and the RoleBinding, by which the reconciler may renew the Secrets.
        pub fn role(&self) -> String {
            format!("stayput-{}-certificates", self.cluster)
        }
    }
}

#[cfg(test)]
mod tests;
