//! A whole cluster of one node. The control plane runs on this machine, kubelet and containerd in
//! the node's namespaces. Pods can be reached by their addresses from here, and reach the apiserver
//! as in any cluster; there is no DNS and no proxy for other services.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tempfile::TempDir;

use super::apiserver::{ApiServer, Site, part};
use super::audit::Audit;
use super::containerd::Containerd;
use super::network::Network;
use super::node::Node;
use super::pki::text;
use super::process::Process;
use super::resources::directory;

/// On a busy machine. On an idle one the whole cluster needs five seconds.
const CLUSTER_START_TIMEOUT: Duration = Duration::from_secs(180);
/// The name of the node.
const NAME: &str = "node";

/// A running cluster; all of it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    // In the order in which they are dropped: the node ends all its pods.
    node: Node,
    _daemons: [Process; 4],
    /// The API, with its users.
    pub(crate) api: ApiServer,
    /// The node's images.
    pub(crate) images: Containerd,
    /// The requests of service accounts to the API.
    pub(crate) audit: Audit,
    network: Network,
    _directory: TempDir,
}

impl Cluster {
    /// Starts one and waits until its node is ready; `Err` names what is missing here.
    pub(crate) fn start() -> Result<Self, String> {
        let (program, parts) = (part("STAYPUT_KUBE")?, part("STAYPUT_CONTAINERD")?);
        let directory = directory();
        let pause = program.with_file_name("kube-pause");
        let node = Node::new(directory.path(), &pause)?;
        let network = Network::lay(node.init(), node.name());
        let images = Containerd::new(parts, directory.path().join("containerd"), network);
        let mut runtime = node.start("containerd", directory.path(), &images.line());
        let audit = Audit::new(directory.path());
        let api = ApiServer::start_at(Site {
            address: network.host().into(),
            // The port of the service `kubernetes`, whose address the apiserver has.
            port: 443,
            services: network.services(),
            flags: audit.flags(),
        })?;
        let manager = controllers(&program, &api, directory.path());
        let scheduler = scheduler(&program, &api, directory.path());
        runtime.until("it answers", CLUSTER_START_TIMEOUT, || images.is_up().then_some(()));
        images.load_pause(&pause);
        let line = kubelet(&program, &api, &node, network, &images);
        let mut kubelet = node.start("kubelet", directory.path(), &line);
        let admin = api.admin().clone();
        let path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        kubelet.until("the node is ready", CLUSTER_START_TIMEOUT, || {
            let ready = admin.attempt(&["get", "node", NAME, "--output", path], "");
            ready.is_ok_and(|ready| ready == "True").then_some(())
        });
        kubelet.until("there is an account for pods", CLUSTER_START_TIMEOUT, || {
            admin.attempt(&["get", "serviceaccount", "default"], "").ok()
        });
        let daemons = [kubelet, runtime, scheduler, manager];
        let _directory = directory;
        Ok(Self { node, _daemons: daemons, api, images, audit, network, _directory })
    }

    /// When the kubelet last changed the content of a pod's volume of a Secret.
    pub(crate) fn secret_mounted_at(&self, pod_uid: &str, volume: &str) -> SystemTime {
        let volumes = format!("pods/{pod_uid}/volumes/kubernetes.io~secret/{volume}/..data");
        let path = self.images.directory().with_file_name("kubelet").join(volumes);
        // The mount is only visible in the node's namespace.
        let root = format!("/proc/{}/root", self.node.init());
        let path = Path::new(&root).join(path.strip_prefix("/").expect("an absolute path"));
        let link = fs::symlink_metadata(&path);
        let link = link.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        link.modified().expect("a file system with times")
    }

    /// A pod's volume of its own, which is gone when the pod is.
    pub(crate) fn empty_dir(&self, pod_uid: &str, volume: &str) -> PathBuf {
        let volumes = format!("pods/{pod_uid}/volumes/kubernetes.io~empty-dir/{volume}");
        self.images.directory().with_file_name("kubelet").join(volumes)
    }

    /// The addresses that pods get, in their order.
    pub(crate) fn pod_addresses(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        self.network.pod_addresses()
    }
}

fn controllers(program: &Path, api: &ApiServer, logs: &Path) -> Process {
    let user = api.user("system:kube-controller-manager", "system:masters");
    let pki = api.pki();
    let line = [
        text(program).to_owned(),
        "kube-controller-manager".to_owned(),
        format!("--kubeconfig={}", text(user.kubeconfig())),
        format!("--root-ca-file={}", text(&pki.authority())),
        format!("--service-account-private-key-file={}", text(&pki.token_key())),
        "--leader-elect=false".to_owned(),
        // Not used here.
        "--secure-port=0".to_owned(),
    ];
    Process::start("kube-controller-manager", logs, &line)
}

fn scheduler(program: &Path, api: &ApiServer, logs: &Path) -> Process {
    let user = api.user("system:kube-scheduler", "system:masters");
    let line = [
        text(program).to_owned(),
        "kube-scheduler".to_owned(),
        format!("--kubeconfig={}", text(user.kubeconfig())),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    Process::start("kube-scheduler", logs, &line)
}

fn kubelet(
    program: &Path,
    api: &ApiServer,
    node: &Node,
    network: Network,
    images: &Containerd,
) -> Vec<String> {
    let root = images.directory().with_file_name("kubelet");
    fs::create_dir_all(&root).expect("a directory");
    let pki = api.pki();
    let serving = pki.server("kubelet", &[network.node().into()]);
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{}", text(&images.socket())),
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": false },
            "x509": { "clientCAFile": pki.authority() },
        },
        // The client with a certificate is the apiserver.
        "authorization": { "mode": "AlwaysAllow" },
        "tlsCertFile": serving.certificate,
        "tlsPrivateKeyFile": serving.key,
        "volumePluginDir": root.join("plugins"),
        // Containers must be below a control group of their own, to distinguish them from other
        // containers of this machine.
        "cgroupRoot": format!("/{}", node.name()),
        "cgroupDriver": "cgroupfs",
        // Without it, kubelet 1.34 panics when the size of a pod is changed.
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // How full the disk is does not matter for the tests.
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "resolvConf": "",
    });
    let file = root.join("config.json");
    fs::write(&file, config.to_string()).expect("a config");
    let user = api.user(&format!("system:node:{NAME}"), "system:nodes");
    vec![
        text(program).to_owned(),
        "kubelet".to_owned(),
        format!("--config={}", text(&file)),
        format!("--kubeconfig={}", text(user.kubeconfig())),
        format!("--root-dir={}", text(&root)),
        format!("--cert-dir={}", text(&root)),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={}", network.node()),
        // Which container a control group is, for what it uses.
        format!("--containerd={}", text(&images.socket())),
    ]
}
