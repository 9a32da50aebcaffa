//! Reads a cluster, and does what is decided.

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod as KubePod};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::decide::{Action, Decision, Pod, Policy, Pool, REST, Seen, decide};
use super::objects::{APPLIED, CLUSTER_LABEL, Declared, FILE, POOL_LABEL, just_created};
use crate::harness::http::exchange;

const REVISION: &str = "controller-revision-hash";
const ENABLE: &str = "cluster.routing.allocation.enable";
/// How long an engine may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// controller-runtime's delay after the first error; each further one in a row doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(5);

/// The operator of one `OpenSearchCluster`.
#[derive(Clone)]
pub struct Operator {
    client: Client,
    namespace: String,
    name: String,
    base: Value,
    config_path: String,
    parallel_recovery: bool,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One look.
#[derive(Debug, Clone)]
pub struct Look {
    /// Everything that was done.
    pub done: Vec<Action>,
    /// Why the next action could not be done. It ends the look.
    pub refused: Option<String>,
    /// Time until the next one, if nothing changes before and nothing was refused.
    pub again: Duration,
}

impl Look {
    /// True if all is as declared and nothing is left to do.
    pub fn is_at_rest(&self) -> bool {
        self.done.is_empty() && self.refused.is_none() && self.again == REST
    }
}

/// An answer of the apiserver or of an engine, or why there is none.
type Answer<T> = Result<T, String>;

impl Operator {
    /// The operator of the `OpenSearchCluster` `name`. Its pods are made from `base`, a pod template, and read their
    /// config at `config_path`.
    pub fn new(
        client: Client,
        [namespace, name]: [&str; 2],
        base: Value,
        config_path: &str,
    ) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            name: name.into(),
            base,
            config_path: config_path.into(),
            parallel_recovery: true,
        }
    }

    /// As with `PARALLEL_RECOVERY_ENABLED=false`.
    #[must_use]
    pub fn without_parallel_recovery(self) -> Self {
        Self { parallel_recovery: false, ..self }
    }

    /// Looks when anything of the cluster changes, and when the last look has said. Runs until it is dropped.
    pub async fn run(self, mut seen: impl FnMut(&Look)) {
        let config = watcher::Config::default();
        let labelled = config.clone().labels(&format!("{CLUSTER_LABEL}={}", self.name));
        let sets = watcher(self.api::<StatefulSet>(), labelled).map(drop);
        let clusters = watcher(self.clusters(), config).map(drop);
        let mut changes = stream::select(sets.boxed(), clusters.boxed());
        let mut failures = 0_u32;
        loop {
            while changes.next().now_or_never().is_some() {}
            let look = self.look().await;
            failures = if look.refused.is_some() { failures + 1 } else { 0 };
            let delay = FIRST_DELAY * 2_u32.saturating_pow(failures.saturating_sub(1).min(17));
            let again = if failures == 0 { look.again } else { delay };
            seen(&look);
            // The time is over, or something has changed.
            let _ = tokio::time::timeout(again, changes.next()).await;
        }
    }

    /// One look at everything, and what follows from it.
    pub async fn look(&self) -> Look {
        let mut look = Look { done: Vec::new(), refused: None, again: FIRST_DELAY };
        let (cluster, seen) = match self.read().await {
            Ok(read) => read,
            Err(why) => return Look { refused: Some(why), ..look },
        };
        let Decision { actions, again } = decide(&seen);
        look.again = again;
        for action in actions {
            if let Err(why) = self.act(&action, &cluster).await {
                look.refused = Some(format!("{action:?}: {why}"));
                break;
            }
            look.done.push(action);
        }
        look
    }

    async fn read(&self) -> Answer<(Value, Seen)> {
        let cluster = json!(self.clusters().get(&self.name).await.map_err(text)?);
        let restarting = json!({"component": "RollingRestart", "status": "InProgress"});
        let components = cluster["status"]["componentsStatus"].as_array();
        let mut pools = Vec::new();
        for pool in cluster["spec"]["nodePools"].as_array().into_iter().flatten() {
            pools.push(self.pool(&cluster, pool).await?);
        }
        let health = self.ask("GET", "/_cluster/health", None).await?;
        let settings = self.ask("GET", "/_cluster/settings?flat_settings=true", None).await?;
        let seen = Seen {
            pools,
            parallel_recovery: self.parallel_recovery,
            is_restarting: components.is_some_and(|all| all.contains(&restarting)),
            is_green: health["status"] == "green",
            allocation: settings["transient"][ENABLE].as_str().map(str::to_owned),
        };
        Ok((cluster, seen))
    }

    async fn pool(&self, cluster: &Value, pool: &Value) -> Answer<Pool> {
        let set = json!(self.set(pool).await?);
        let config = self.api::<ConfigMap>().get_opt(&self.config_map()).await.map_err(text)?;
        let declared = self.declared(cluster, pool);
        let configured = config.and_then(|map| map.data?.remove(FILE));
        let applied = &set["metadata"]["annotations"][APPLIED];
        let is_new = !set["spec"]["template"]["metadata"]["annotations"][APPLIED].is_null();
        let status = &set["status"];
        let number = |value: &Value| value.as_u64().and_then(|it| usize::try_from(it).ok());
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_parallel = set["spec"]["podManagementPolicy"] == "Parallel";
        let roles = pool["roles"].as_array().into_iter().flatten();
        Ok(Pool {
            set: word(&set["metadata"]["name"]),
            replicas: number(&set["spec"]["replicas"]).unwrap_or(1),
            is_manager: roles.into_iter().any(|role| role == "cluster_manager"),
            is_as_declared: *applied == declared.applied
                && configured == Some(declared.config)
                && !is_new,
            policy: if is_parallel { Policy::Parallel } else { Policy::OrderedReady },
            claims: self.list::<PersistentVolumeClaim>(pool).await?.len(),
            current_revision: word(&status["currentRevision"]),
            update_revision: word(&status["updateRevision"]),
            updated_replicas: number(&status["updatedReplicas"]).unwrap_or(0),
            available_replicas: number(&status["availableReplicas"]).unwrap_or(0),
            pods: self.list::<KubePod>(pool).await?.iter().map(pod).collect(),
        })
    }

    async fn act(&self, action: &Action, cluster: &Value) -> Answer<()> {
        let params = PatchParams::default();
        match action {
            Action::Write { set } => self.write(set, cluster).await,
            Action::Remake { set, policy } => self.remake(set, *policy, cluster).await,
            Action::SetCurrentRevision { set } => {
                let sets = self.api::<StatefulSet>();
                let status = json!(sets.get(set).await.map_err(text)?.status);
                let patch = json!({ "status": { "currentRevision": status["updateRevision"] } });
                sets.patch_status(set, &params, &Patch::Merge(patch)).await.map(drop).map_err(text)
            }
            Action::SetRestarting(on) => {
                let status = if *on { "InProgress" } else { "Finished" };
                let components = json!([{ "component": "RollingRestart", "status": status }]);
                let patch = Patch::Merge(json!({ "status": { "componentsStatus": components } }));
                let clusters = self.clusters();
                clusters.patch_status(&self.name, &params, &patch).await.map(drop).map_err(text)
            }
            Action::Allocate(value) => {
                let body = json!({ "transient": { ENABLE: value } });
                self.ask("PUT", "/_cluster/settings", Some(body)).await.map(drop)
            }
            Action::Delete { pod } => {
                let pods = self.api::<KubePod>();
                pods.delete(pod, &DeleteParams::default()).await.map(drop).map_err(text)
            }
        }
    }

    async fn write(&self, name: &str, cluster: &Value) -> Answer<()> {
        let sets = self.api::<StatefulSet>();
        let declared = self.declared_for(&sets.get(name).await.map_err(text)?, cluster);
        self.configure(&declared.config).await?;
        let mut set = json!(sets.get(name).await.map_err(text)?);
        set["spec"]["template"] = declared.template;
        set["metadata"]["annotations"][APPLIED] = json!(declared.applied);
        let set = serde_json::from_value(set).map_err(|error| error.to_string())?;
        sets.replace(name, &PostParams::default(), &set).await.map(drop).map_err(text)
    }

    /// `WaitForSTSDelete`, and the set made again.
    async fn remake(&self, name: &str, policy: Policy, cluster: &Value) -> Answer<()> {
        let sets = self.api::<StatefulSet>();
        let old = sets.get(name).await.map_err(text)?;
        let declared = self.declared_for(&old, cluster);
        let mut set = json!({ "metadata": {
            "name": name,
            "labels": old.metadata.labels,
            "annotations": { APPLIED: declared.applied },
            "ownerReferences": old.metadata.owner_references,
        } });
        set["spec"] = json!(old.spec);
        set["spec"]["podManagementPolicy"] = json!(format!("{policy:?}"));
        set["spec"]["template"] = declared.template;
        just_created(&mut set);
        self.configure(&declared.config).await?;
        sets.delete(name, &DeleteParams::orphan()).await.map_err(text)?;
        while sets.get_opt(name).await.map_err(text)?.is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let set = serde_json::from_value(set).map_err(|error| error.to_string())?;
        sets.create(&PostParams::default(), &set).await.map(drop).map_err(text)
    }

    async fn configure(&self, text_of_it: &str) -> Answer<()> {
        let (maps, name) = (self.api::<ConfigMap>(), self.config_map());
        let map = json!({ "metadata": { "name": name }, "data": { FILE: text_of_it } });
        if maps.get_opt(&name).await.map_err(text)?.is_some() {
            let patch = Patch::Merge(map);
            return maps
                .patch(&name, &PatchParams::default(), &patch)
                .await
                .map(drop)
                .map_err(text);
        }
        let map = serde_json::from_value(map).map_err(|error| error.to_string())?;
        maps.create(&PostParams::default(), &map).await.map(drop).map_err(text)
    }

    fn declared(&self, cluster: &Value, pool: &Value) -> Declared {
        Declared::new(cluster, pool, &self.base, &self.config_path)
    }

    /// By the label of the pool on its set.
    fn declared_for(&self, set: &StatefulSet, cluster: &Value) -> Declared {
        let component = set.labels().get(POOL_LABEL).map(String::as_str);
        let mut pools = cluster["spec"]["nodePools"].as_array().into_iter().flatten();
        let pool = pools.find(|pool| pool["component"].as_str() == component);
        self.declared(cluster, pool.unwrap_or(&Value::Null))
    }

    fn config_map(&self) -> String {
        format!("{}-config", self.name)
    }

    /// Sends a request to the engines of the cluster's pods until one answers.
    async fn ask(&self, method: &str, target: &str, body: Option<Value>) -> Answer<Value> {
        let params = ListParams::default().labels(&format!("{CLUSTER_LABEL}={}", self.name));
        let pods = self.api::<KubePod>().list(&params).await.map_err(text)?;
        let addresses = pods.items.into_iter().filter_map(|pod| pod.status?.pod_ip);
        let addresses: Vec<String> = addresses.collect();
        let (method, target) = (method.to_owned(), target.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            let mut answers =
                addresses.iter().map(|host| ask(host, (&method, &target), body.as_ref()));
            answers.find_map(Result::ok).ok_or_else(|| format!("{target}: no engine answers"))
        });
        asked.await.map_err(|error| error.to_string())?
    }

    async fn set(&self, pool: &Value) -> Answer<StatefulSet> {
        self.list(pool).await?.pop().ok_or_else(|| "there is no StatefulSet".to_owned())
    }

    async fn list<K>(&self, pool: &Value) -> Answer<Vec<K>>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let component = pool["component"].as_str().unwrap_or_default();
        let selector = format!("{CLUSTER_LABEL}={},{POOL_LABEL}={component}", self.name);
        let params = ListParams::default().labels(&selector);
        self.api::<K>().list(&params).await.map(|list| list.items).map_err(text)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn clusters(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource())
    }
}

fn resource() -> ApiResource {
    ApiResource {
        group: "opensearch.org".into(),
        version: "v1".into(),
        api_version: "opensearch.org/v1".into(),
        kind: "OpenSearchCluster".into(),
        plural: "opensearchclusters".into(),
    }
}

fn pod(pod: &KubePod) -> Pod {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    Pod {
        name: pod.name_any(),
        revision: pod.labels().get(REVISION).cloned().unwrap_or_default(),
        is_ready: conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True"),
        is_deleting: pod.metadata.deletion_timestamp.is_some(),
    }
}

fn ask(host: &str, request: (&str, &str), body: Option<&Value>) -> std::io::Result<Value> {
    let address = format!("{host}:9200").parse::<SocketAddr>().map_err(std::io::Error::other)?;
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let answer = exchange(stream, request, body)?;
    let is_done = answer.status == 200;
    is_done.then_some(answer.body).ok_or_else(|| std::io::Error::other(request.1.to_owned()))
}

fn text(error: kube::Error) -> String {
    error.to_string()
}
