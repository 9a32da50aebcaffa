//! A mounted Secret or ConfigMap, updated as kubelet does it, and its checksum as a shell would
//! compute it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// The volume.
pub(crate) struct Volume {
    mount: PathBuf,
    generation: u32,
}

impl Volume {
    /// A volume that is still empty.
    pub(crate) fn new(mount: PathBuf) -> Self {
        Self { mount, generation: 0 }
    }

    /// Replaces all files at once by these (always the same names) and returns their checksum.
    ///
    /// The steps are those of kubelet's `AtomicWriter`: a new directory, a new link to it, and a
    /// rename of that link over `..data`, through which every visible file is read.
    pub(crate) fn swap(&mut self, files: &[(&str, &str)]) -> io::Result<String> {
        let data = self.mount.join("..data");
        let old = fs::read_link(&data).ok();
        self.generation += 1;
        let new = format!("..2026_11_21_09_00_00.{}", self.generation);
        fs::create_dir(self.mount.join(&new))?;
        for (name, content) in files {
            fs::write(self.mount.join(&new).join(name), content)?;
            if old.is_none() {
                symlink(format!("..data/{name}"), self.mount.join(name))?;
            }
        }
        let temporary = self.mount.join("..data_tmp");
        symlink(&new, &temporary)?;
        fs::rename(&temporary, &data)?;
        if let Some(old) = old {
            fs::remove_dir_all(self.mount.join(old))?;
        }
        Ok(checksum(files))
    }
}

/// `cd DIR && LC_ALL=C sha256sum * | sha256sum`, on purpose not with the manager's own code.
fn checksum(files: &[(&str, &str)]) -> String {
    let mut files = files.to_vec();
    files.sort_unstable();
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
