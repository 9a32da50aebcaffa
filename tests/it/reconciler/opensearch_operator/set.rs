//! What the StatefulSet controller and the kubelet do: they count pods by their labels, make a deleted pod again from
//! the update revision, and say which pods are ready.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::fixture::{Fixture, NODES};
use super::super::manager::Manager;
use super::super::objects::{NAMESPACE, pod, pod_status};
use crate::support::standin_cluster::ask_at;

const REVISION: &str = "controller-revision-hash";
const ACTUAL_REVISION: &str = "stayput.dev/actual-revision";
const PAUSE: Duration = Duration::from_millis(20);

/// A pod of the set.
#[derive(Debug, Clone)]
pub(super) struct FoundPod {
    pub(super) uid: String,
    pub(super) container: String,
    /// Its label.
    pub(super) revision: String,
    /// It has an annotation with the revision that it is made from.
    pub(super) is_ahead: bool,
}

/// The pods by their names.
pub(super) type Found = BTreeMap<&'static str, FoundPod>;

/// The controller of the set `logs`; it ends when this is dropped.
pub(super) struct SetController {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    client: Client,
    managers: Arc<Mutex<BTreeMap<String, Manager>>>,
    /// Edits are seen without a word of the test.
    sees_at_once: AtomicBool,
    /// Number of the update revision.
    revision: AtomicUsize,
    fewest_ready: AtomicUsize,
}

impl SetController {
    /// Gives the fixture's pods to the set, and goes on until it is dropped.
    pub(super) async fn adopt(fixture: &Fixture) -> Self {
        let shared = Arc::new(Shared {
            client: fixture.client.clone(),
            managers: Arc::clone(&fixture.managers),
            sees_at_once: AtomicBool::new(false),
            revision: AtomicUsize::new(0),
            fewest_ready: AtomicUsize::new(NODES.len()),
        });
        let revision = shared.see().await;
        let set = shared.set().await;
        for name in NODES {
            let metadata = shared.metadata(&set, &revision);
            shared.patch_pod(name, json!({ "metadata": metadata })).await;
        }
        let theirs = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            loop {
                theirs.turn().await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { shared, task }
    }

    /// Sees the set's template; returns its revision.
    pub(super) async fn see(&self) -> String {
        self.shared.see().await
    }

    /// Sees each edit from now on.
    pub(super) fn see_at_once(&self) {
        self.shared.sees_at_once.store(true, Ordering::Relaxed);
    }

    /// The update revision.
    pub(super) fn wanted(&self) -> String {
        name(self.shared.revision.load(Ordering::Relaxed))
    }

    /// The fewest pods that were ready at any time.
    pub(super) fn fewest_ready(&self) -> usize {
        self.shared.fewest_ready.load(Ordering::Relaxed)
    }

    pub(super) async fn pods(&self) -> Found {
        let mut found = Found::new();
        for name in NODES {
            let Some(pod) = self.shared.pod(name).await else { continue };
            let metadata = &pod["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let one = FoundPod {
                uid: text(&metadata["uid"]),
                container: text(&pod["status"]["containerStatuses"][0]["containerID"]),
                revision: text(&metadata["labels"][REVISION]),
                is_ahead: !metadata["annotations"][ACTUAL_REVISION].is_null(),
            };
            found.insert(name, one);
        }
        found
    }
}

impl Drop for SetController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn name(revision: usize) -> String {
    format!("logs-{revision}")
}

impl Shared {
    async fn turn(&self) {
        if self.sees_at_once.load(Ordering::Relaxed) {
            self.see().await;
        }
        let set = self.set().await;
        let wanted = name(self.revision.load(Ordering::Relaxed));
        let (mut ready, mut updated) = (0, 0);
        for pod_name in NODES {
            let Some(pod) = self.pod(pod_name).await else {
                self.make(pod_name, &set, &wanted).await;
                continue;
            };
            ready += usize::from(self.is_ready(pod_name, &pod).await);
            updated += usize::from(pod["metadata"]["labels"][REVISION] == *wanted);
        }
        self.fewest_ready.fetch_min(ready, Ordering::Relaxed);
        let status = json!({
            "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready,
        });
        let is_known =
            ["updatedReplicas", "readyReplicas", "availableReplicas"].iter().all(|key| {
                set["status"][key].as_u64().unwrap_or(0) == status[key].as_u64().unwrap_or(0)
            });
        if !is_known {
            self.patch_status(status).await;
        }
    }

    async fn set(&self) -> Value {
        json!(self.api::<StatefulSet>().get("logs").await.expect("it is there"))
    }

    async fn pod(&self, name: &str) -> Option<Value> {
        self.api::<Pod>().get_opt(name).await.expect("an answer").map(|pod| json!(pod))
    }

    async fn see(&self) -> String {
        let set = self.set().await;
        let number = self.revision.load(Ordering::Relaxed);
        let revisions = self.api::<ControllerRevision>();
        let mut template = set["spec"]["template"].clone();
        template["$patch"] = json!("replace");
        let data = json!({"spec": {"template": template}});
        let last = revisions.get_opt(&name(number)).await.expect("an answer");
        if last.is_some_and(|last| json!(last.data) == data) {
            return name(number);
        }
        let number = number + 1;
        let object = json!({
            "metadata": {"name": name(number)}, "revision": number, "data": data,
        });
        let object = serde_json::from_value(object).expect("an object");
        revisions.create(&PostParams::default(), &object).await.expect("it is created");
        self.revision.store(number, Ordering::Relaxed);
        let mut status = json!({
            "replicas": NODES.len(),
            "observedGeneration": set["metadata"]["generation"],
            "updateRevision": name(number),
            "updatedReplicas": 0,
        });
        if number == 1 {
            status["currentRevision"] = json!(name(number));
        }
        self.patch_status(status).await;
        name(number)
    }

    /// Labels and owner of a pod that is made from this revision.
    fn metadata(&self, set: &Value, revision: &str) -> Value {
        let template = &set["spec"]["template"]["metadata"];
        let mut labels = template["labels"].clone();
        labels[REVISION] = json!(revision);
        json!({
            "labels": labels,
            "annotations": template["annotations"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs",
                "uid": set["metadata"]["uid"], "controller": true,
            }],
        })
    }

    /// Makes a pod that is gone, with a new manager on its old data.
    async fn make(&self, pod_name: &str, set: &Value, revision: &str) {
        let mut object = pod(pod_name);
        let metadata = self.metadata(set, revision);
        for field in ["labels", "annotations", "ownerReferences"] {
            object["metadata"][field] = metadata[field].clone();
        }
        let object = serde_json::from_value(object).expect("a pod");
        let made = self.api::<Pod>().create(&PostParams::default(), &object).await;
        let uid = made.expect("it is created").metadata.uid.expect("a uid");
        let address = {
            let mut managers = self.managers.lock().expect("a lock");
            let manager = managers.get_mut(pod_name).expect("a manager");
            manager.move_to(&uid);
            manager.address.clone()
        };
        self.say(pod_name, pod_status(&address, false)).await;
    }

    /// Says whether a pod is ready: if its engine answers.
    async fn is_ready(&self, name: &str, pod: &Value) -> bool {
        let address = pod["status"]["podIP"].as_str().unwrap_or_default().to_owned();
        let at = address.clone();
        let ask = move || ask_at(&at, "GET", "/_cluster/health", None);
        let answer = tokio::task::spawn_blocking(ask).await.expect("no panic");
        let ready = answer.is_some_and(|(status, _)| status == 200);
        let was = pod["status"]["conditions"][0]["status"] == "True";
        if ready != was && !address.is_empty() {
            self.say(name, pod_status(&address, ready)).await;
        }
        ready
    }

    async fn say(&self, name: &str, status: Value) {
        let status = Patch::Merge(status);
        // It may have been deleted meanwhile.
        let _ = self.api::<Pod>().patch_status(name, &PatchParams::default(), &status).await;
    }

    async fn patch_pod(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let pods = self.api::<Pod>();
        pods.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    async fn patch_status(&self, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let sets = self.api::<StatefulSet>();
        sets.patch_status("logs", &PatchParams::default(), &patch).await.expect("it is taken");
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}
