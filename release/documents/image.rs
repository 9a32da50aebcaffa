//! An image for several architectures as an OCI layout, made from a Dockerfile that only copies one
//! program: no engine, no emulation, and the same bytes every time.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Failure, sha256};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Writes the layout; layers are written `ARCH=FILE.tar`. Returns the digest of the image.
pub(crate) fn write(
    name: &str,
    dockerfile: &str,
    date: &str,
    layout: &Path,
    layers: &[&str],
) -> Result<String, Failure> {
    let config = config(dockerfile)?;
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let mut manifests = Vec::new();
    for layer in layers {
        let (arch, file) = layer.split_once('=').ok_or_else(|| format!("no file: {layer}"))?;
        let layer = blob(layout, LAYER, &fs::read(file)?)?;
        let platform = json!({"architecture": arch, "os": "linux"});
        let image = json!({
            "architecture": arch, "os": "linux", "created": date, "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        });
        let config = blob(layout, CONFIG, image.to_string().as_bytes())?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        });
        let mut manifest = blob(layout, MANIFEST, manifest.to_string().as_bytes())?;
        manifest["platform"] = platform;
        manifests.push(manifest);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut image = blob(layout, INDEX, index.to_string().as_bytes())?;
    let digest = image["digest"].as_str().unwrap_or_default().to_owned();
    let (_, tag) = name.split_once(':').ok_or_else(|| format!("no tag: {name}"))?;
    image["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag,
        "io.containerd.image.name": format!("docker.io/{name}"),
    });
    let top = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]});
    fs::write(layout.join("index.json"), top.to_string())?;
    fs::write(layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    Ok(digest)
}

/// Writes a blob, and describes it.
fn blob(layout: &Path, media_type: &str, bytes: &[u8]) -> Result<Value, Failure> {
    let digest = sha256(bytes);
    fs::write(layout.join("blobs/sha256").join(&digest), bytes)?;
    Ok(json!({
        "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len(),
    }))
}

/// What a container is started with. An instruction that is not known is an error: the image would not
/// be what the Dockerfile makes.
fn config(dockerfile: &str) -> Result<Value, Failure> {
    let mut config = json!({});
    let lines = dockerfile.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        match line.split_once(' ').ok_or("an instruction without a value")? {
            ("FROM", "scratch") => {}
            ("COPY", files) => {
                let (from, to) = files.split_once(' ').ok_or("COPY of more than one file")?;
                if to.strip_prefix('/') != Some(from) {
                    return Err(format!("not to the root by the same name: {line}").into());
                }
            }
            ("USER", user) => config["User"] = json!(user),
            ("ENTRYPOINT", words) => config["Entrypoint"] = serde_json::from_str(words)?,
            _ => return Err(format!("cannot be made without an engine: {line}").into()),
        }
    }
    Ok(config)
}
