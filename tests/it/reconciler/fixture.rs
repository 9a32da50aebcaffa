//! Three nodes, an apiserver, and a reconciler that can be ended and started again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stayput_api::Status;
use stayput_controller::{RunError, Settings, run};
use stayput_http::jwt::{Grant, Scopes, mint, pod_audience};
use stayput_http::manager_client::{Address, Credentials, ManagerClient, Token};
use stayput_http::telemetry;
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus, crd};
use stayput_restart::{HistoryEntry, annotation};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::manager::Manager;
use super::objects::{
    DEADLINE, KEY, NAMESPACE, eventually, pod, pod_status, search_cluster, secret,
};
use crate::support::kubelet::Payload;
use crate::support::pki::Pki;
use crate::support::ports::loopback_addresses;
use crate::support::standin_cluster::ask_at;
use stayput_standin::apiserver::ApiServer;
use stayput_standin::harness;
use stayput_standin::harness::recorder::Recorder;

/// Names of the pods, and of the nodes.
pub(super) const NODES: [&str; 3] = ["logs-0", "logs-1", "logs-2"];

/// Everything but the reconciler.
pub(super) struct Fixture {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) managers: Arc<Mutex<BTreeMap<String, Manager>>>,
    pub(super) pki: Pki,
    base: BTreeMap<String, String>,
    kubelet: JoinHandle<()>,
}

/// A running reconciler; ended, not killed, by [`Reconciler::end`].
pub(super) struct Reconciler {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RunError>>,
    _recorder: Option<Recorder>,
}

impl Reconciler {
    pub(super) fn start(client: Client) -> Self {
        Self::start_with(client, Settings { name: "test".into(), ..Settings::default() })
    }

    pub(super) fn start_with(client: Client, mut settings: Settings) -> Self {
        // To find out which step takes so long.
        if std::env::var_os("STAYPUT_TEST_LOG").is_some() {
            telemetry::init(telemetry::LogFormat::Text, tracing::level_filters::LevelFilter::DEBUG);
        }
        let recorder = match settings.snapshots {
            None => Recorder::start("it", NAMESPACE, "logs", Duration::from_millis(30)),
            Some(_) => None,
        };
        settings.snapshots = settings.snapshots.or(recorder.as_ref().map(|one| one.address));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(run(client, settings, async move {
            // Stops when dropped.
            let _ = stopped.await;
        }));
        Self { stop, task, _recorder: recorder }
    }

    /// Ends it, and waits for its end.
    pub(super) async fn end(self) {
        drop(self.stop);
        let ended = timeout(DEADLINE, self.task).await.expect("it ends in time");
        ended.expect("no panic").expect("no error");
    }

    /// Ends it in the middle of its work, like a crash.
    pub(super) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|error| error.is_cancelled()));
    }
}

impl Fixture {
    /// Three running nodes that form a cluster, and a SearchCluster for them.
    pub(super) async fn new(settings: &str) -> Self {
        let fixture = Self::bare(settings).await;
        fixture.create::<SearchCluster>(search_cluster(true)).await;
        fixture
    }

    /// The same without a SearchCluster.
    pub(super) async fn bare(settings: &str) -> Self {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        Self::with_options(server, settings, &[]).await
    }

    /// The same, with more options for the managers.
    pub(super) async fn with_options(
        server: ApiServer,
        settings: &str,
        options: &[String],
    ) -> Self {
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        crds.create(&PostParams::default(), &crd()).await.expect("the definition is taken");
        let pki = Pki::named(&["stayput"]);
        let hosts: Vec<String> = loopback_addresses().into_iter().take(NODES.len()).collect();
        let seeds: Vec<String> = hosts.iter().map(|host| format!("{host}:9300")).collect();
        let managers = Arc::new(Mutex::new(BTreeMap::new()));
        let watched = Arc::clone(&managers);
        let kubelet = tokio::spawn(kubelet(client.clone(), watched));
        let mut fixture = Self { server, client, managers, pki, base: BTreeMap::new(), kubelet };
        let ca = std::fs::read_to_string(fixture.pki.file("ca")).expect("a file");
        fixture.create::<Secret>(secret("manager-ca", None, [("ca.crt", ca.as_str())])).await;
        fixture.create::<Secret>(secret("manager-key", Some("logs"), [("key", KEY)])).await;
        for (name, host) in NODES.iter().zip(&hosts) {
            let made: Pod = fixture.create(pod(name)).await;
            let uid = made.metadata.uid.expect("a uid");
            let mut manager = Manager::new(name, &uid, host);
            let config = format!(
                "cluster.name: logs\nnode.name: {name}\nnetwork.host: {host}\nhttp.port: 9200\n\
                 discovery.seed_hosts: {seeds:?}\n\
                 cluster.initial_master_nodes: logs-0,logs-1,logs-2\npath.data: {}\n",
                manager.path("data").display()
            );
            let whole = format!("{config}{settings}\n");
            let of_pod = format!("{name}-config");
            let files = [("elasticsearch.yml", whole.as_str())];
            fixture.create::<Secret>(secret(&of_pod, Some("logs"), files)).await;
            manager.mount(&whole);
            manager.start(&fixture.pki, options);
            fixture.base.insert((*name).to_owned(), config);
            fixture.managers.lock().expect("a lock").insert((*name).to_owned(), manager);
            fixture.say(name, host, true).await;
        }
        fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
        fixture
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
        K::DynamicType: Default,
    {
        let object: K = serde_json::from_value(object).expect("an object");
        self.api::<K>().create(&PostParams::default(), &object).await.expect("it is created")
    }

    async fn say(&self, name: &str, address: &str, ready: bool) {
        let status = Patch::Merge(pod_status(address, ready));
        let api = self.api::<Pod>();
        api.patch_status(name, &PatchParams::default(), &status).await.expect("it is taken");
    }

    /// Sends a request to one node after the other until one answers with 200.
    pub(super) async fn engine_until(&self, path: &str) -> Value {
        let hosts: Vec<String> = {
            let managers = self.managers.lock().expect("a lock");
            managers.values().map(|manager| manager.address.clone()).collect()
        };
        eventually(&format!("{path}: 200"), async || {
            for host in &hosts {
                if let Some((200, body)) = ask(host, path).await {
                    return Some(body);
                }
            }
            None
        })
        .await
    }

    /// Changes the config source of a node.
    pub(super) async fn configure(&self, name: &str, settings: &str) {
        let whole = format!("{}{settings}\n", self.base[name]);
        let patch = Patch::Merge(json!({"stringData": {"elasticsearch.yml": whole}}));
        let api = self.api::<Secret>();
        let of_pod = format!("{name}-config");
        api.patch(&of_pod, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    /// Mounts what the config source of a node has, without a change of its pod.
    pub(super) async fn mount(&self, name: &str) {
        let secret =
            self.api::<Secret>().get(&format!("{name}-config")).await.expect("it is there");
        let file = &secret.data.expect("data")["elasticsearch.yml"].0;
        let text = std::str::from_utf8(file).expect("text");
        self.with(name, |manager| manager.mount(text));
    }

    /// Changes annotations of the SearchCluster.
    pub(super) async fn annotate(&self, key: &str, value: Option<&str>) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let api = self.api::<SearchCluster>();
        api.patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
    }

    /// Changes the spec of the SearchCluster.
    pub(super) async fn respec(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        let api = self.api::<SearchCluster>();
        api.patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
    }

    pub(super) async fn cluster(&self) -> SearchCluster {
        self.api::<SearchCluster>().get("logs").await.expect("it is there")
    }

    /// Changes a Secret.
    pub(super) async fn reveal(&self, name: &str, data: Value) {
        let patch = Patch::Merge(json!({"stringData": data}));
        let api = self.api::<Secret>();
        api.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    /// Waits until the restart is blocked by this rule; returns the message.
    pub(super) async fn until_blocked(&self, rule: &str) -> String {
        let blocked = |cluster: &SearchCluster| {
            let report = &cluster.status.as_ref()?.report;
            (report.blocked.as_deref() == Some(rule)).then(|| report.message.clone())?
        };
        let cluster = self.until(rule, |cluster| blocked(cluster).is_some()).await;
        blocked(&cluster).expect("it is blocked")
    }

    /// Requests a restart.
    pub(super) async fn ask(&self, id: &str, strategy: &str) {
        let request = json!({"id": id, "strategy": strategy}).to_string();
        self.annotate(annotation::REQUEST, Some(&request)).await;
    }

    /// Waits until an engine is requested to stop; the name of its node.
    pub(super) async fn until_stopping(&self) -> &'static str {
        self.until_stopping_after(&[]).await
    }

    /// The same after stops of these nodes. The managers' logs still show a stop that was over before we looked.
    pub(super) async fn until_stopping_after(&self, before: &[&str]) -> &'static str {
        eventually("an engine is requested to stop", async || {
            let is_next = |name: &&'static str| {
                !before.contains(name) && self.with(name, |manager| manager.stops()) > 0
            };
            NODES.into_iter().find(is_next)
        })
        .await
    }

    /// A kubeconfig for the apiserver, in a directory of its own.
    pub(super) fn kubeconfig(&self) -> (TempDir, PathBuf) {
        let directory = TempDir::new().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        fs::write(&kubeconfig, self.server.kubeconfig()).expect("a file");
        (directory, kubeconfig)
    }

    /// Waits for the first status: from then on requests are accepted.
    pub(super) async fn until_seen(&self) {
        self.until("a status", |cluster| cluster.status.is_some()).await;
    }

    /// Waits until the SearchCluster meets the condition.
    pub(super) async fn until(
        &self,
        what: &str,
        wanted: impl Fn(&SearchCluster) -> bool,
    ) -> SearchCluster {
        let last = RefCell::new(None);
        let found = eventually(what, async || {
            // The apiserver may be unavailable: some tests are about that.
            let cluster = self.api::<SearchCluster>().get("logs").await.ok()?;
            let is_wanted = wanted(&cluster);
            last.replace(cluster.status.clone());
            is_wanted.then_some(cluster)
        });
        let guard = PrintOnFailure { fixture: self, status: &last };
        let found = found.await;
        std::mem::forget(guard);
        found
    }

    /// Requests a restart, and waits until it has ended.
    pub(super) async fn restart(&self, id: &str, strategy: &str) -> HistoryEntry {
        self.ask(id, strategy).await;
        self.until_over(id).await
    }

    pub(super) async fn until_over(&self, id: &str) -> HistoryEntry {
        let over = |cluster: &SearchCluster| {
            let status = cluster.status.as_ref()?;
            status.ledger.history.iter().find(|entry| entry.id == id).cloned()
        };
        let what = format!("{id} is over");
        let cluster = self.until(&what, |cluster| over(cluster).is_some()).await;
        over(&cluster).expect("it is over")
    }

    pub(super) async fn pod(&self, name: &str) -> Pod {
        self.api::<Pod>().get(name).await.expect("it is there")
    }

    /// The pids of each manager, and of each engine.
    pub(super) fn processes(&self) -> BTreeMap<String, (u32, Option<u32>)> {
        let managers = self.managers.lock().expect("a lock");
        let pids = managers.iter();
        pids.map(|(name, manager)| (name.clone(), (manager.pid(), manager.engine()))).collect()
    }

    /// How often the engine of a node was started.
    pub(super) async fn starts(&self, name: &str) -> u64 {
        self.status(name).await.starts
    }

    /// The status of a node's manager.
    pub(super) async fn status(&self, name: &str) -> Status {
        let (address, uid) = self.with(name, |manager| (manager.address.clone(), manager.uid()));
        let grant = Grant {
            subject: "test".into(),
            scopes: Scopes::READ,
            audience: pod_audience(NAMESPACE, &uid),
            ttl: Duration::from_secs(60),
        };
        let token = mint(KEY.as_bytes(), &grant, SystemTime::now()).expect("a token");
        let client = ManagerClient::new(Address::Url {
            url: format!("https://{address}:9199"),
            server_name: Some("stayput".into()),
            credentials: Credentials { tls: Some(self.pki.tls()), token: Some(Token::Text(token)) },
        });
        client.expect("a client").status().await.expect("a status").status
    }

    pub(super) fn with<T>(&self, name: &str, work: impl FnOnce(&mut Manager) -> T) -> T {
        let mut managers = self.managers.lock().expect("a lock");
        work(managers.get_mut(name).expect("a manager"))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

/// Prints the last status and the end of the managers' logs if a wait fails.
struct PrintOnFailure<'a> {
    fixture: &'a Fixture,
    status: &'a RefCell<Option<SearchClusterStatus>>,
}

impl Drop for PrintOnFailure<'_> {
    fn drop(&mut self) {
        eprintln!("--- status\n{}", json!(*self.status.borrow()));
        let managers = self.fixture.managers.lock().expect("a lock");
        for (name, manager) in managers.iter() {
            let log = manager.log();
            let tail: Vec<&str> = log.lines().rev().take(12).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            eprintln!("--- {name}\n{}", tail.join("\n"));
        }
    }
}

/// Mounts a Secret in its pod when the pod is changed, and at no other time.
async fn kubelet(client: Client, managers: Arc<Mutex<BTreeMap<String, Manager>>>) {
    let mount = |pod: &str, files: Payload| {
        if let Some(manager) = managers.lock().expect("a lock").get_mut(pod) {
            manager.mount(&files["elasticsearch.yml"]);
        }
    };
    harness::kubelet::run(client, NAMESPACE, annotation::NUDGE, mount).await;
}

/// `GET path` at an engine.
async fn ask(host: &str, path: &str) -> Option<(u16, Value)> {
    let (host, path) = (host.to_owned(), path.to_owned());
    let ask = tokio::task::spawn_blocking(move || ask_at(&host, "GET", &path, None));
    timeout(Duration::from_secs(35), ask).await.ok()?.ok()?
}
