//! A Kubernetes: apiserver, kubelet and reconciler, all on one thread of this program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stayput_controller::{RunError, Settings, run};
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus, crd};
use stayput_restart::HistoryEntry;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::engine::Network;
use super::kubelet::{self, Volumes};
use super::member::DIRECTORIES;
use super::objects::{NAMESPACE, search_cluster};
use super::{NAMES, facts, pki};
use crate::error::{Context, Result};
use stayput_standin::apiserver::ApiServer;
use stayput_standin::harness::kubelet::Payload;
use stayput_standin::harness::objects::{pod, pod_status, secret};

/// No single call may take longer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The Kubernetes, and a directory for the files of all pods.
pub(super) struct Kubernetes {
    directory: TempDir,
    client: Client,
    handle: Handle,
    volumes: Volumes,
    reconciler: Mutex<Option<Reconciler>>,
    end: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

struct Reconciler {
    stop: oneshot::Sender<()>,
    ended: mpsc::Receiver<std::result::Result<(), RunError>>,
}

impl Kubernetes {
    /// Starts the apiserver and the kubelet.
    pub(super) fn start() -> Result<Self> {
        let text = |error: std::io::Error| format!("the demo cannot be set up: {error}");
        let directory = tempfile::Builder::new().prefix("stayput-demo-").tempdir().map_err(text)?;
        for (pod, part) in NAMES.iter().flat_map(|pod| DIRECTORIES.map(|part| (pod, part))) {
            fs::create_dir_all(directory.path().join(pod).join(part)).map_err(text)?;
        }
        let volumes = Volumes::default();
        let (of_kubelet, path) = (volumes.clone(), directory.path().to_owned());
        let (end, ended) = oneshot::channel::<()>();
        let (sender, started) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(text)?;
            runtime.block_on(async {
                let server = ApiServer::start().await.map_err(text)?;
                fs::write(path.join("kubeconfig"), server.kubeconfig()).map_err(text)?;
                // The receiver is gone only if the demo has ended.
                let _ = sender.send((server.client(), Handle::current()));
                let kubelet = kubelet::run(server.client(), NAMESPACE, &path, of_kubelet);
                tokio::select! {
                    () = kubelet => Err("the kubelet has ended".into()),
                    _ = ended => Ok(()),
                }
            })
        });
        let (client, handle) = started.recv().map_err(|_| "the apiserver did not start")?;
        let reconciler = Mutex::default();
        Ok(Self { directory, client, handle, volumes, reconciler, end, thread })
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// The last lines of each manager and engine.
    pub(super) fn end_of_log(&self) -> String {
        let tail = |name: &&str| {
            let log = fs::read(self.directory.path().join(name).join("log")).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            let lines: Vec<&str> = log.lines().collect();
            format!("{name}:\n{}", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        NAMES.iter().map(tail).collect::<Vec<_>>().join("\n")
    }

    /// The work of an administrator: custom resource definition, keys, certificates, reconciler.
    pub(super) fn prepare(&self) -> Result<()> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        self.call("the definition", async { crds.create(&PostParams::default(), &crd()).await })?;
        let ca = pki::write(self.directory.path())?;
        self.create::<Secret>(allowed("manager-ca", [("ca.crt", ca.as_str())]))?;
        self.create::<Secret>(allowed("manager-key", [("key", pki::KEY)]))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, ended) = mpsc::channel();
        let settings = Settings {
            namespaces: vec![NAMESPACE.into()],
            name: "demo".into(),
            ..Settings::default()
        };
        let client = self.client.clone();
        self.handle.spawn(async move {
            let result = run(client, settings, async move { drop(stopped.await) }).await;
            let _ = sender.send(result);
        });
        *self.reconciler.lock().map_err(|error| error.to_string())? =
            Some(Reconciler { stop, ended });
        Ok(())
    }

    /// Ends the reconciler, and waits for it.
    pub(super) fn stop_reconciler(&self) -> Result<()> {
        let running = self.reconciler.lock().map_err(|error| error.to_string())?.take();
        let Some(Reconciler { stop, ended }) = running else { return Ok(()) };
        drop(stop);
        ended
            .recv_timeout(CALL_TIMEOUT)
            .map_err(|_| "the reconciler did not end")?
            .context("the reconciler failed")
    }

    /// Creates a running pod; returns its uid.
    pub(super) fn create_pod(&self, name: &str, address: &str) -> Result<String> {
        let made: Pod = self.create(pod(name))?;
        let status = Patch::Merge(pod_status(address, true));
        let pods = self.api::<Pod>();
        self.call(name, async { pods.patch_status(name, &PatchParams::default(), &status).await })?;
        made.metadata.uid.ok_or_else(|| format!("{name} has no uid").into())
    }

    /// The Secret of a pod, and its volume.
    pub(super) fn mount(&self, name: &str, files: &Payload) -> Result<()> {
        let content = files.iter().map(|(file, text)| (file.as_str(), text.as_str()));
        self.create::<Secret>(allowed(&format!("{name}-config"), content))?;
        self.volumes.mount(self.directory.path(), name, files)
    }

    /// Creates the SearchCluster, and waits until the reconciler has reported on it.
    pub(super) fn declare(&self, network: &Network) -> Result<()> {
        self.create::<SearchCluster>(search_cluster(network))?;
        self.until("an idle cluster", CALL_TIMEOUT, |status| status.report.phase == "Idle")
    }

    /// Changes the Secret of a pod; the kubelet updates the volume.
    pub(super) fn configure(&self, name: &str, files: &Payload) -> Result<()> {
        let patch = Patch::Merge(json!({"stringData": files}));
        let secrets = self.api::<Secret>();
        let of_pod = format!("{name}-config");
        let patched = async { secrets.patch(&of_pod, &PatchParams::default(), &patch).await };
        self.call(&of_pod, patched).map(drop)
    }

    /// Uid of each pod.
    pub(super) fn pod_uids(&self) -> Result<BTreeMap<String, String>> {
        let pods = self.api::<Pod>();
        let list = self.call("pods", async { pods.list(&ListParams::default()).await })?;
        let pair = |pod: Pod| Some((pod.metadata.name?, pod.metadata.uid?));
        Ok(list.items.into_iter().filter_map(pair).collect())
    }

    /// The last entry of the history.
    pub(super) fn last_restart(&self) -> Result<HistoryEntry> {
        let history = self.status()?.map(|status| status.ledger.history).unwrap_or_default();
        history.last().cloned().ok_or_else(|| "the history is empty".into())
    }

    /// Waits until the status meets the condition.
    pub(super) fn until(
        &self,
        what: &str,
        timeout: Duration,
        wanted: impl Fn(&SearchClusterStatus) -> bool,
    ) -> Result<()> {
        facts::until(what, timeout, || {
            self.status().ok().flatten().filter(|status| wanted(status)).map(drop)
        })
    }

    /// Ends apiserver and kubelet.
    pub(super) fn end(self) -> Result<()> {
        let Self { end, thread, directory, .. } = self;
        drop(end);
        let ended = thread.join().map_err(|_| "the apiserver's thread has panicked")?;
        directory.close().context("the directory cannot be removed")?;
        ended
    }

    fn status(&self) -> Result<Option<SearchClusterStatus>> {
        let clusters = self.api::<SearchCluster>();
        let cluster = self.call("logs", async { clusters.get("logs").await })?;
        Ok(cluster.status)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn create<K>(&self, object: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let what = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let object: K = serde_json::from_value(object).map_err(|error| error.to_string())?;
        let api = self.api::<K>();
        self.call(&what, async { api.create(&PostParams::default(), &object).await })
    }

    fn call<T>(&self, what: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T> {
        let answer = self.handle.block_on(async { timeout(CALL_TIMEOUT, call).await });
        answer.map_err(|_| format!("{what}: no answer within {CALL_TIMEOUT:?}"))?.context(what)
    }
}

/// A Secret that the SearchCluster may use.
fn allowed<'a>(name: &str, data: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    secret(name, Some("logs"), data)
}
