//! A PEM document with its name in messages.

use std::fmt;

/// A PEM document, from a file or a Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    name: String,
    bytes: Vec<u8>,
}

impl Pem {
    /// A document with this content. `name` is used in messages: `the CA /etc/ca.pem`, `the key
    /// tls.key of Secret logs/tls`.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Shows only the name: the document may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pem({})", self.name)
    }
}
