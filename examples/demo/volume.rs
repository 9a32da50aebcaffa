//! A mounted Secret or ConfigMap, updated as the kubelet does it, and its checksum as a shell would
//! compute it.

use std::fmt::Write as _;
use std::io;

use sha2::{Digest, Sha256};
use stayput_standin::harness::kubelet::{AtomicWriter, Payload};

/// Makes `files` the content of the volume; returns their checksum.
pub(crate) fn mount(volume: &mut AtomicWriter, files: &Payload) -> io::Result<String> {
    volume.try_write(files)?;
    Ok(checksum(files))
}

/// `cd DIR && LC_ALL=C sha256sum * | sha256sum`, without the manager's own code on purpose.
fn checksum(files: &Payload) -> String {
    let mut listing = String::new();
    for (name, content) in files {
        listing.push_str(&format!("{}  {name}\n", sha256(content)));
    }
    format!("sha256:{}", sha256(&listing))
}

fn sha256(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
