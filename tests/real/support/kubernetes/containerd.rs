//! The container runtime of a node: containerd with runc and a bridge.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::image::Image;
use super::network::Network;
use super::pki::text;

/// The image of every pod's sandbox.
const PAUSE: &str = "stayput.test/pause:1";

/// Where it is installed, and where its data is.
#[derive(Debug)]
pub(crate) struct Containerd {
    parts: PathBuf,
    directory: PathBuf,
}

impl Containerd {
    /// Writes its configuration into a new directory.
    pub(crate) fn new(parts: PathBuf, directory: PathBuf, network: Network) -> Self {
        fs::create_dir_all(directory.join("cni")).expect("a directory");
        let runtime = Self { parts, directory };
        let at = |name: &str| runtime.directory.join(name);
        let (root, opt, socket, conf) = (at("root"), at("opt"), runtime.socket(), at("cni"));
        let (runc, plugins) =
            (runtime.parts.join("usr/sbin/runc"), runtime.parts.join("usr/lib/cni"));
        // restrict_oom_score_adj: if the caller's own may not be lowered, no sandbox could be
        // created. The state is in /run, which each node has for itself.
        let config = format!(
            r#"version = 2
root = {root:?}
state = "/run/containerd"
[grpc]
  address = {socket:?}
[plugins."io.containerd.internal.v1.opt"]
  path = {opt:?}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = {runc:?}
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = {plugins:?}
  conf_dir = {conf:?}
"#
        );
        fs::write(at("config.toml"), config).expect("a config");
        let bridge = json!({
            "type": "bridge",
            "bridge": "pods0",
            "isGateway": true,
            // Pods are reached by route, and see each other's real address.
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "dataDir": "/run/cni",
                "ranges": [[{ "subnet": network.pods() }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        });
        let list = json!({ "cniVersion": "0.4.0", "name": "pods", "plugins": [bridge] });
        fs::write(conf.join("pods.conflist"), list.to_string()).expect("a config");
        runtime
    }

    /// By this end of the name the kubelet measures what containers use itself, as it does for CRI-O.
    /// It lowers no limit below that, and this containerd does not tell it.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("run/crio/crio.sock")
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its command; its shim must be in the PATH.
    pub(crate) fn line(&self) -> Vec<String> {
        let bin = self.parts.join("usr/bin");
        let path = std::env::var("PATH").unwrap_or_default();
        vec![
            "env".to_owned(),
            format!("PATH={}:{path}", text(&bin)),
            text(&bin.join("containerd")).to_owned(),
            "--log-level=warn".to_owned(),
            "--config".to_owned(),
            text(&self.directory.join("config.toml")).to_owned(),
        ]
    }

    fn ctr(&self) -> Command {
        let mut ctr = Command::new(self.parts.join("usr/bin/ctr"));
        ctr.args(["--address", text(&self.socket()), "--namespace", "k8s.io"]);
        ctr
    }

    /// Whether it answers.
    pub(crate) fn is_up(&self) -> bool {
        self.ctr().arg("version").output().is_ok_and(|output| output.status.success())
    }

    pub(crate) fn load_pause(&self, program: &Path) {
        self.load(&Image {
            name: PAUSE,
            files: &[(program, "/pause")],
            entrypoint: &["/pause"],
            directory: "/",
            owner: 0,
        });
    }

    /// Imports an image; pods name it with `imagePullPolicy: Never`.
    #[track_caller]
    pub(crate) fn load(&self, image: &Image<'_>) {
        let tar = image.write(&self.directory);
        self.import(&tar);
        fs::remove_file(tar).expect("it is ours");
    }

    /// Gives an image another name.
    #[track_caller]
    pub(crate) fn tag(&self, image: &str, name: &str) {
        let output = self.ctr().args(["images", "tag", image, name]).output();
        let output = output.expect("ctr can be executed");
        assert!(output.status.success(), "ctr: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Imports an image of the Docker engine, under the same name.
    #[track_caller]
    pub(crate) fn load_from_docker(&self, name: &str) {
        let saved = self.directory.join("docker.tar");
        super::super::container::docker(&["save", "--output", text(&saved), name]);
        self.import(&saved);
        fs::remove_file(saved).expect("it is ours");
    }

    /// Imports an image that is a file, under the name that is in it.
    #[track_caller]
    pub(crate) fn import(&self, tar: &Path) {
        let tar = Stdio::from(fs::File::open(tar).expect("the image"));
        let output = self.ctr().args(["images", "import", "-"]).stdin(tar).output();
        let output = output.expect("ctr can be executed");
        assert!(output.status.success(), "ctr: {}", String::from_utf8_lossy(&output.stderr));
    }
}
