//! The objects that certificates and keys are kept in.

/// Label, and its value, of the objects that we made and may change.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stayput");

/// The ConfigMap with the apiserver's public keys, one for all clusters of a namespace.
pub const KEY_SET: &str = "cluster-jwks";

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
            serving: format!("{cluster}-manager-tls"),
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
