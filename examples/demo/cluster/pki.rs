//! A CA and the managers' certificate, which is for the name `stayput`.

use std::fs;
use std::path::Path;

use stayput_standin::harness::pki::{Issued, issue};

use crate::error::{Context, Result};

/// The key that managers and reconciler share.
pub(super) const KEY: &str = "a shared key of thirty-two bytes, or more";

/// Writes `tls.crt`, `tls.key` and `jwt.key`; returns the PEM of the CA.
pub(super) fn write(directory: &Path) -> Result<String> {
    let Issued { ca, certificate, key } = issue(&["stayput"]).context("no certificate")?;
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    for (name, content) in
        [("tls.crt", certificate.as_str()), ("tls.key", key.as_str()), ("jwt.key", KEY)]
    {
        fs::write(directory.join(name), content).context(name)?;
    }
    Ok(ca.pem())
}
