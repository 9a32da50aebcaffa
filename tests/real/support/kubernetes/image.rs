//! Container images without a builder and a registry: one layer of files, as an OCI tar.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::pki::text;

/// The content of an image.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    /// The full name, such as `stayput.test/manager:1`.
    pub(crate) name: &'a str,
    /// Executable by all users: the source path, and the path in the image.
    pub(crate) files: &'a [(&'a Path, &'a str)],
    pub(crate) entrypoint: &'a [&'a str],
    /// The directory that it is executed in.
    pub(crate) directory: &'a str,
    /// The user and the group of all files and directories, and the user that it runs as.
    pub(crate) owner: u32,
}

impl Image<'_> {
    /// Writes it into `below`; returns the tar.
    pub(crate) fn write(&self, below: &Path) -> PathBuf {
        let work = tempfile::tempdir_in(below).expect("a temp dir");
        let (files, blobs) = (work.path().join("files"), work.path().join("oci/blobs/sha256"));
        fs::create_dir(&files).expect("a directory");
        fs::create_dir_all(&blobs).expect("a directory");
        for (from, to) in self.files {
            let to = files.join(to.trim_start_matches('/'));
            fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
            fs::copy(from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        let tar = work.path().join("layer.tar");
        pack(&files, &tar, self.owner);
        let layer = Blob::write(&blobs, &fs::read(&tar).expect("a layer"), "layer.v1.tar");
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "User": self.owner.to_string(),
                "WorkingDir": self.directory,
            },
            "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
        });
        let config = Blob::write(&blobs, config.to_string().as_bytes(), "config.v1+json");
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
        });
        let manifest = Blob::write(&blobs, manifest.to_string().as_bytes(), "manifest.v1+json");
        let mut descriptor = manifest.descriptor();
        descriptor["annotations"] = json!({ "io.containerd.image.name": self.name });
        let index = json!({ "schemaVersion": 2, "manifests": [descriptor] });
        let oci = work.path().join("oci");
        fs::write(oci.join("index.json"), index.to_string()).expect("an index");
        fs::write(oci.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).expect("a layout");
        let image = below.join(format!("{}.tar", self.name.replace(['/', ':'], "-")));
        pack(&oci, &image, 0);
        image
    }
}

#[derive(Debug)]
struct Blob {
    digest: String,
    size: usize,
    kind: &'static str,
}

impl Blob {
    fn write(blobs: &Path, content: &[u8], kind: &'static str) -> Self {
        let sum = Sha256::digest(content);
        let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(blobs.join(&hex), content).expect("a blob");
        Self { digest: format!("sha256:{hex}"), size: content.len(), kind }
    }

    fn descriptor(&self) -> Value {
        let kind = format!("application/vnd.oci.image.{}", self.kind);
        json!({ "mediaType": kind, "digest": self.digest, "size": self.size })
    }
}

fn pack(directory: &Path, tar: &Path, owner: u32) {
    let output = Command::new("tar")
        .args(["--create", "--numeric-owner", "--file", text(tar)])
        .args([format!("--owner={owner}"), format!("--group={owner}")])
        .args(["--directory", text(directory), "."])
        .output()
        .expect("tar can be executed");
    assert!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
}
