//! The Kubernetes: apiserver, kubelet and reconciler on a thread of their own.

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
use stayput_reconciler::cluster::{SearchCluster, SearchClusterStatus, crd};
use stayput_reconciler::controller::{Settings, run};
use stayput_restart::HistoryEntry;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::engine::{Files, Network};
use super::kubelet::{self, Volumes};
use super::member::DIRECTORIES;
use super::objects::{NAMESPACE, pod, pod_status, search_cluster, secret};
use super::{NAMES, facts, pki};
use stayput_standin::apiserver::ApiServer;

/// No single call takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The Kubernetes, and a directory for everything.
pub(super) struct World {
    directory: TempDir,
    client: Client,
    handle: Handle,
    volumes: Volumes,
    reconciler: Mutex<Option<Reconciler>>,
    end: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), String>>,
}

struct Reconciler {
    stop: oneshot::Sender<()>,
    ended: mpsc::Receiver<Result<(), String>>,
}

impl World {
    /// Starts the apiserver and the kubelet.
    pub(super) fn start() -> Result<Self, String> {
        let text = |error: std::io::Error| format!("no world to play in: {error}");
        let directory = tempfile::Builder::new().prefix("stayput-demo-").tempdir().map_err(text)?;
        for (pod, part) in NAMES.iter().flat_map(|pod| DIRECTORIES.map(|part| (pod, part))) {
            fs::create_dir_all(directory.path().join(pod).join(part)).map_err(text)?;
        }
        let volumes = Volumes::default();
        let (of_kubelet, path) = (volumes.clone(), directory.path().to_owned());
        let (end, ended) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(text)?;
            runtime.block_on(async {
                let server = ApiServer::start().await.map_err(text)?;
                fs::write(path.join("kubeconfig"), server.kubeconfig()).map_err(text)?;
                // Nobody is there to hear it only if the demo has ended.
                let _ = tell.send((server.client(), Handle::current()));
                let kubelet = kubelet::run(server.client(), NAMESPACE, &path, of_kubelet);
                tokio::select! {
                    () = kubelet => Err("the kubelet has ended".to_owned()),
                    _ = ended => Ok(()),
                }
            })
        });
        let (client, handle) = told.recv().map_err(|_| "the apiserver did not start")?;
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

    /// What an administrator does once: definition, keys, certificates, the reconciler.
    pub(super) fn prepare(&self) -> Result<(), String> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        self.call("the definition", async { crds.create(&PostParams::default(), &crd()).await })?;
        let ca = pki::write(self.directory.path())?;
        self.create::<Secret>(secret("manager-ca", &[("ca.crt".into(), ca)]))?;
        self.create::<Secret>(secret("manager-key", &[("key".into(), pki::KEY.into())]))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, ended) = mpsc::channel();
        let settings = Settings {
            namespaces: vec![NAMESPACE.into()],
            name: "demo".into(),
            ..Settings::default()
        };
        let client = self.client.clone();
        self.handle.spawn(async move {
            let result = run(client, settings, async move { drop(stopped.await) }).await;
            let _ = tell.send(result.map_err(|error| error.to_string()));
        });
        *self.reconciler.lock().map_err(|error| error.to_string())? =
            Some(Reconciler { stop, ended });
        Ok(())
    }

    /// Tells the reconciler to end, and waits for it.
    pub(super) fn stop_reconciler(&self) -> Result<(), String> {
        let running = self.reconciler.lock().map_err(|error| error.to_string())?.take();
        let Some(Reconciler { stop, ended }) = running else { return Ok(()) };
        drop(stop);
        ended.recv_timeout(PATIENCE).map_err(|_| "the reconciler did not end")?
    }

    /// A pod that runs; its uid.
    pub(super) fn create_pod(&self, name: &str, address: &str) -> Result<String, String> {
        let made: Pod = self.create(pod(name))?;
        let status = Patch::Merge(pod_status(address));
        let pods = self.api::<Pod>();
        self.call(name, async { pods.patch_status(name, &PatchParams::default(), &status).await })?;
        made.metadata.uid.ok_or_else(|| format!("{name} has no uid"))
    }

    /// The Secret of a pod, and its volume.
    pub(super) fn mount(&self, name: &str, files: &Files) -> Result<(), String> {
        self.create::<Secret>(secret(&format!("{name}-config"), files))?;
        self.volumes.mount(self.directory.path(), name, files)
    }

    /// Declares the SearchCluster, and waits for the reconciler's first look.
    pub(super) fn declare(&self, network: &Network) -> Result<(), String> {
        self.create::<SearchCluster>(search_cluster(network))?;
        self.until("an idle cluster", PATIENCE, |status| status.report.phase == "Idle")
    }

    /// Changes the Secret of a pod; its volume is the kubelet's.
    pub(super) fn configure(&self, name: &str, files: &Files) -> Result<(), String> {
        let files: BTreeMap<&String, &String> = files.iter().map(|(k, v)| (k, v)).collect();
        let patch = Patch::Merge(json!({"stringData": files}));
        let secrets = self.api::<Secret>();
        let of_pod = format!("{name}-config");
        let patched = async { secrets.patch(&of_pod, &PatchParams::default(), &patch).await };
        self.call(&of_pod, patched).map(drop)
    }

    /// Uid of each pod.
    pub(super) fn pod_uids(&self) -> Result<BTreeMap<String, String>, String> {
        let pods = self.api::<Pod>();
        let list = self.call("pods", async { pods.list(&ListParams::default()).await })?;
        let pair = |pod: Pod| Some((pod.metadata.name?, pod.metadata.uid?));
        Ok(list.items.into_iter().filter_map(pair).collect())
    }

    /// The last entry of the history.
    pub(super) fn last_restart(&self) -> Result<HistoryEntry, String> {
        let history = self.status()?.map(|status| status.ledger.history).unwrap_or_default();
        history.last().cloned().ok_or_else(|| "the history is empty".to_owned())
    }

    /// Waits until the status is as wanted.
    pub(super) fn until(
        &self,
        what: &str,
        patience: Duration,
        wanted: impl Fn(&SearchClusterStatus) -> bool,
    ) -> Result<(), String> {
        facts::until(what, patience, || {
            self.status().ok().flatten().filter(|status| wanted(status)).map(drop)
        })
    }

    /// Ends apiserver and kubelet.
    pub(super) fn end(self) -> Result<(), String> {
        let Self { end, thread, directory, .. } = self;
        drop(end);
        let ended = thread.join().map_err(|_| "the apiserver's thread has panicked")?;
        directory.close().map_err(|error| format!("the directory cannot be removed: {error}"))?;
        ended
    }

    fn status(&self) -> Result<Option<SearchClusterStatus>, String> {
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

    fn create<K>(&self, object: Value) -> Result<K, String>
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

    fn call<T>(
        &self,
        what: &str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, String> {
        let answer = self.handle.block_on(async { timeout(PATIENCE, call).await });
        answer
            .map_err(|_| format!("{what}: no answer within {PATIENCE:?}"))?
            .map_err(|error| format!("{what}: {error}"))
    }
}
