//! An apiserver with its etcd: only the API. No pods run, no service accounts are created and no
//! garbage is collected; RBAC, admission, tokens, CRDs, leases and server-side apply are all real.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::kubectl::Kubectl;
use super::pki::{Pki, text};
use super::process::Process;
use super::resources::directory;
use crate::support::ports::free_loopback_port;

/// On a busy machine. On an idle one it needs three seconds.
const APISERVER_START_TIMEOUT: Duration = Duration::from_secs(120);

/// Flags for the keys that check tokens, one flag each, and for the one that signs them.
const ACCEPTED_KEY: &str = "--service-account-key-file";
const SIGNING_KEY: &str = "--service-account-signing-key-file";

/// Where a part is installed.
pub(crate) fn part(variable: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.ok_or_else(|| format!("no {variable}: tests/parts/env prints it, once it is installed"))
}

/// How an apiserver in a cluster differs from one that runs alone on loopback.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) services: String,
    pub(crate) flags: Vec<String>,
}

/// A running apiserver; it and its etcd end, and their data goes, when this is dropped.
#[derive(Debug)]
pub(crate) struct ApiServer {
    // In the order they are dropped.
    apiserver: Process,
    _etcd: Process,
    admin: Kubectl,
    line: Vec<String>,
    store: String,
    url: String,
    pki: Pki,
    program: PathBuf,
    directory: TempDir,
}

impl ApiServer {
    /// Starts one on loopback; `Err` names what is missing here.
    pub(crate) fn start() -> Result<Self, String> {
        Self::start_at(Site {
            address: [127, 0, 0, 1].into(),
            port: free_loopback_port(),
            services: "10.0.0.0/24".to_owned(),
            // There is no controller that creates the default account for pods.
            flags: vec!["--disable-admission-plugins=ServiceAccount".to_owned()],
        })
    }

    /// Starts one; `Err` names what is missing here.
    pub(crate) fn start_at(site: Site) -> Result<Self, String> {
        let program = part("STAYPUT_KUBE")?;
        let directory = directory();
        let pki = Pki::new(directory.path().join("pki"));
        let (etcd, store) = start_etcd(&program, directory.path());
        let url = format!("https://{}:{}", site.address, site.port);
        let line = command_line(&program, directory.path(), &pki, &site, &store);
        let apiserver = Process::start("kube-apiserver", directory.path(), &line);
        let file = directory.path().join("kubeconfig");
        let identity = pki.client("admin", "system:masters");
        let admin = Kubectl::new(&program, file, &url, &pki.authority(), &identity);
        let mut server =
            Self { apiserver, _etcd: etcd, admin, line, store, url, pki, program, directory };
        server.until_ready();
        Ok(server)
    }

    fn until_ready(&mut self) {
        let (authority, url) = (self.pki.authority(), self.url.clone());
        let answers = |path: &str| {
            // This needs no authorization. curl starts much faster than kubectl.
            let output = Command::new("curl")
                .args(["--silent", "--fail", "--max-time", "5", "--cacert", text(&authority)])
                .arg(format!("{url}{path}"))
                .output();
            output.is_ok_and(|output| output.status.success()).then_some(())
        };
        self.apiserver.until("it is ready", APISERVER_START_TIMEOUT, || answers("/readyz"));
        // Created a moment later.
        let admin = self.admin.clone();
        self.apiserver.until("there is a namespace", APISERVER_START_TIMEOUT, || {
            admin.attempt(&["get", "namespace", "default"], "").ok()
        });
    }

    /// The user who may do everything.
    pub(crate) const fn admin(&self) -> &Kubectl {
        &self.admin
    }

    /// A user with a client certificate, who may do what RBAC gives the user or the group.
    pub(crate) fn user(&self, name: &str, group: &str) -> Kubectl {
        let identity = self.pki.client(name, group);
        let file = self.directory.path().join(format!("{}.kubeconfig", name.replace(':', "-")));
        Kubectl::new(&self.program, file, &self.url, &self.pki.authority(), &identity)
    }

    /// `https://ADDRESS:PORT`, which is the issuer of the tokens, too.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The certificate of the CA that signed the server's.
    pub(crate) fn authority(&self) -> PathBuf {
        self.pki.authority()
    }

    /// The cluster's certificates.
    pub(crate) const fn pki(&self) -> &Pki {
        &self.pki
    }

    /// The directory of its logs; other things that must end with it can be in it.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A token of a service account, by TokenRequest.
    #[track_caller]
    pub(crate) fn token(&self, namespace: &str, account: &str, audience: &str) -> String {
        let of = ["create", "token", account, "--namespace", namespace];
        self.admin.run(&[&of[..], &["--audience", audience, "--duration", "10m"]].concat())
    }

    /// What the server answers to a GET.
    #[track_caller]
    pub(crate) fn raw(&self, path: &str) -> Value {
        let printed = self.admin.run(&["get", "--raw", path]);
        serde_json::from_str(&printed).unwrap_or_else(|_| panic!("not JSON: {printed}"))
    }

    /// Stops answering and keeps all connections open, like a partition, until [`Self::thaw`].
    pub(crate) fn freeze(&self) {
        self.apiserver.signal(Signal::SIGSTOP);
    }

    pub(crate) fn thaw(&self) {
        self.apiserver.signal(Signal::SIGCONT);
    }

    /// Ends it at once: connections are refused, until [`Self::start_again`].
    pub(crate) fn kill(&mut self) {
        self.apiserver.kill();
    }

    /// Compacts etcd to the current revision, which happens by itself every five minutes. The
    /// apiserver's own caches keep older versions until [`Self::start_again`].
    pub(crate) fn compact_store(&self) {
        let ask = |path: &str, body: &Value| {
            let output = Command::new("curl")
                .args(["--silent", "--fail", "--data", &body.to_string()])
                .arg(format!("{}/v3/kv/{path}", self.store))
                .output()
                .expect("curl can be executed");
            assert!(output.status.success(), "etcd refused {path}: {output:?}");
            serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
        };
        // There is no such key, but the answer contains the revision.
        let now = ask("range", &json!({"key": "AA=="}))["header"]["revision"].clone();
        ask("compaction", &json!({"revision": now, "physical": true}));
    }

    pub(crate) fn start_again(&mut self) {
        self.apiserver.kill();
        self.apiserver = Process::start("kube-apiserver", self.directory.path(), &self.line);
        self.until_ready();
    }

    /// Signs tokens with another key from now on, and accepts those of the key before, too.
    pub(crate) fn rotate_token_key(&mut self) {
        let next = self.pki.make_next_token_key();
        let signing = format!("{SIGNING_KEY}={}", text(&next));
        self.line.retain(|flag| !flag.starts_with(SIGNING_KEY));
        self.line.extend([signing, format!("{ACCEPTED_KEY}={}", text(&next))]);
        self.start_again();
    }
}

fn start_etcd(program: &Path, directory: &Path) -> (Process, String) {
    let (clients, peers) = [free_loopback_port(), free_loopback_port()]
        .map(|port| format!("http://127.0.0.1:{port}"))
        .into();
    let line = [
        text(program).to_owned(),
        "etcd".to_owned(),
        format!("--data-dir={}", text(&directory.join("etcd"))),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // As kubeadm sets it.
        "--watch-progress-notify-interval=5s".to_owned(),
        // A single member waits for no other before it elects itself.
        "--heartbeat-interval=20".to_owned(),
        "--election-timeout=200".to_owned(),
        "--log-level=warn".to_owned(),
        // Only processes are killed in tests, not the machine, so fsync is not needed.
        "--unsafe-no-fsync".to_owned(),
    ];
    let mut etcd = Process::start("etcd", directory, &line);
    let health = format!("{clients}/health");
    etcd.until("it is healthy", APISERVER_START_TIMEOUT, || {
        let asked = Command::new("curl").args(["--silent", "--fail", &health]).output();
        asked.is_ok_and(|output| output.status.success()).then_some(())
    });
    (etcd, clients)
}

fn command_line(
    program: &Path,
    directory: &Path,
    pki: &Pki,
    site: &Site,
    store: &str,
) -> Vec<String> {
    let Site { address, port, services, flags } = site;
    let first = first_of(services);
    let server = pki.server("apiserver", &[*address, first]);
    let kubelet = pki.client("kube-apiserver-kubelet-client", "system:masters");
    let (key, authority) = (pki.make_token_key(), pki.authority());
    let mut line = vec![text(program).to_owned(), "kube-apiserver".to_owned()];
    line.extend([
        format!("--etcd-servers={store}"),
        format!("--cert-dir={}", text(&directory.join("certificates"))),
        format!("--bind-address={address}"),
        format!("--advertise-address={address}"),
        format!("--secure-port={port}"),
        format!("--service-cluster-ip-range={services}"),
        format!("--tls-cert-file={}", text(&server.certificate)),
        format!("--tls-private-key-file={}", text(&server.key)),
        format!("--client-ca-file={}", text(&authority)),
        format!("--kubelet-client-certificate={}", text(&kubelet.certificate)),
        format!("--kubelet-client-key={}", text(&kubelet.key)),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--service-account-issuer=https://{address}:{port}"),
        format!("{ACCEPTED_KEY}={}", text(&key)),
        format!("{SIGNING_KEY}={}", text(&key)),
    ]);
    line.extend(flags.iter().cloned());
    line
}

/// The address of the service `kubernetes`.
fn first_of(range: &str) -> IpAddr {
    let (network, _) = range.split_once('/').expect("a range");
    let network: std::net::Ipv4Addr = network.parse().expect("an address");
    std::net::Ipv4Addr::from(u32::from(network) + 1).into()
}
