//! An apiserver with a SearchCluster whose status the test writes.

use std::path::{Path, PathBuf};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stayput_kube_access::cluster::{SearchCluster, crd};
use tempfile::TempDir;

use crate::support::json_schema::problems;
use crate::support::lease::lead_throughout;
use crate::support::program::{Ended, finish, kubectl_stayput};
use stayput_standin::apiserver::ApiServer;

/// The apiserver, and a kubeconfig for it.
pub(super) struct Fixture {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    directory: TempDir,
}

impl Fixture {
    /// An apiserver without our custom resource.
    pub(super) async fn bare() -> Self {
        let server = ApiServer::start().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("kubeconfig"), server.kubeconfig()).unwrap();
        Self { client: server.client(), server, directory }
    }

    /// An apiserver that serves SearchClusters, but has none.
    pub(super) async fn empty() -> Self {
        let fixture = Self::bare().await;
        let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
        crds.create(&PostParams::default(), &crd()).await.unwrap();
        fixture
    }

    /// An apiserver with the SearchCluster `logs`, its pods `logs-0` to `logs-2`, and this status. A
    /// reconciler works.
    pub(super) async fn with(status: Value) -> Self {
        let fixture = Self::empty().await;
        fixture.namespace("stayput").await;
        lead_throughout(fixture.client.clone()).await;
        fixture.declare("logs").await;
        for number in 0..3 {
            fixture.pod("logs", number).await;
        }
        fixture.status(status).await;
        fixture
    }

    /// No reconciler has ever worked.
    pub(super) async fn delete_lease(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "stayput");
        leases.delete("stayput-reconciler", &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn namespace(&self, name: &str) {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let all: Api<Namespace> = Api::all(self.client.clone());
        all.create(&PostParams::default(), &namespace).await.unwrap();
    }

    pub(super) fn clusters(&self) -> Api<SearchCluster> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(super) async fn declare(&self, name: &str) {
        let cluster = serde_json::from_value(json!({
            "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "pods": {"selector": {"matchLabels": {"app": name}}},
                "engine": {"scheme": "http"},
                "manager": {"caSecret": "ca", "auth": {"serviceAccountToken": {}}},
            },
        }));
        self.clusters().create(&PostParams::default(), &cluster.unwrap()).await.unwrap();
    }

    pub(super) async fn pod(&self, app: &str, number: u32) {
        let pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{app}-{number}"), "labels": {"app": app}},
            "spec": {"containers": [{"name": "search", "image": "search"}]},
        }));
        self.pods().create(&PostParams::default(), &pod.unwrap()).await.unwrap();
    }

    /// Replaces the status of `logs`, as the reconciler does.
    pub(super) async fn status(&self, status: Value) {
        let mut cluster = self.clusters().get("logs").await.unwrap();
        cluster.status = Some(serde_json::from_value(stored(status)).unwrap());
        self.clusters().replace_status("logs", &PostParams::default(), &cluster).await.unwrap();
    }

    /// Changes metadata or spec of `logs`.
    pub(super) async fn change(&self, patch: Value) {
        let patch = Patch::Merge(patch);
        self.clusters().patch("logs", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Changes annotations of a pod.
    pub(super) async fn annotate_pod(&self, name: &str, annotations: Value) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        self.pods().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// An annotation of `logs`.
    pub(super) async fn annotation(&self, key: &str) -> Option<String> {
        self.clusters().get("logs").await.unwrap().metadata.annotations?.remove(key)
    }

    /// An annotation of a pod.
    pub(super) async fn pod_annotation(&self, pod: &str, key: &str) -> Option<String> {
        self.pods().get(pod).await.unwrap().metadata.annotations?.remove(key)
    }

    /// Runs the command to its end.
    pub(super) async fn run(&self, line: &str) -> Ended {
        let mut command = self.command(line);
        tokio::task::spawn_blocking(move || finish(&mut command)).await.unwrap()
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(super) fn command(&self, line: &str) -> std::process::Command {
        kubectl_stayput(&self.kubeconfig(), line.split_whitespace())
    }

    /// The same; it must succeed. Returns its output.
    #[track_caller]
    pub(super) fn succeeds(&self, line: &str) -> impl Future<Output = String> {
        let line = line.to_owned();
        async move {
            let ended = self.run(&line).await;
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}: {}", ended.stdout);
            ended.stdout
        }
    }

    /// The same, as JSON, which is what the published schema says of this command.
    pub(super) async fn json(&self, line: &str) -> Value {
        let printed =
            serde_json::from_str(&self.succeeds(&format!("{line} -o json")).await).unwrap();
        is_as_published(line, &printed);
        printed
    }

    /// The same; it must fail with this code. Returns the error message.
    pub(super) async fn fails(&self, line: &str, code: i32) -> String {
        let ended = self.run(line).await;
        assert_eq!(ended.code, code, "{line}: {}{}", ended.stdout, ended.stderr);
        ended.stderr
    }
}

/// Checks what a command has printed for programs by `proto/kubectl-stayput.schema.json`.
#[track_caller]
pub(super) fn is_as_published(line: &str, printed: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/kubectl-stayput.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut words = line.split_whitespace();
    let command = words.next().unwrap();
    let is_of_all = words.any(|word| ["-A", "--all-namespaces"].contains(&word));
    let title = match command {
        "status" | "history" if is_of_all => format!("{command} -A"),
        "inject" => "inject --check".to_owned(),
        "watch" => "a line of watch and of restart --watch".to_owned(),
        _ => command.to_owned(),
    };
    let is_it = |one: &&Value| {
        let name = one["title"].as_str().unwrap();
        name == title || name.split(", ").any(|name| name == title)
    };
    let wanted = schema["anyOf"].as_array().unwrap().iter().find(is_it);
    let wanted = wanted.unwrap_or_else(|| panic!("the schema has no {title}"));
    let problems = problems(&schema, wanted, printed);
    assert!(problems.is_empty(), "{line}: {problems:#?}\n{printed:#}");
}

/// The status as it is stored: what only decisions read is in `ledger`.
fn stored(mut status: Value) -> Value {
    let mut ledger = json!({});
    for field in ["restart", "queued", "debts", "handled", "keptStopped", "ignoredChanges"] {
        if let Some(value) = status.as_object_mut().and_then(|all| all.remove(field)) {
            ledger[field] = value;
        }
    }
    if let Some(fields) = status.as_object_mut() {
        fields.insert("ledger".into(), ledger);
    }
    status
}

/// A status with no restart under way; `a` has ended.
pub(super) fn idle() -> Value {
    json!({
        "phase": "Idle", "counts": {"pods": 3, "ready": 3}, "handled": ["a"],
        "history": [{
            "id": "a", "strategy": "rolling", "outcome": "done", "reason": "",
            "started": "2026-11-21T03:08:00Z", "seconds": 100, "nodes": 3,
        }],
    })
}

/// A restart under way, none of whose nodes has been restarted.
pub(super) fn under_way(id: &str, strategy: &str) -> Value {
    let member = |number: u32| {
        json!({
            "podUid": "", "pod": format!("logs-{number}"), "node": format!("logs-{number}"),
            "step": "scheduled", "since": "2026-11-21T03:09:20Z",
        })
    };
    json!({
        "phase": "Blocked", "progress": "rolling 0/3", "blocked": "health",
        "message": "the cluster is red: a primary of index a",
        "nodes": [{
            "name": "logs-0", "phase": "schedule-rolling", "blockedBy": "health",
            "message": "the cluster is red: a primary of index a",
        }],
        "restart": {
            "request": {"id": id, "strategy": strategy, "target": {}},
            "started": "2026-11-21T03:08:00Z",
            "members": [member(0), member(1), member(2)],
        },
        "handled": [id],
    })
}
