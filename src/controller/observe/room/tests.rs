//! What is read to find out whether a pod fits again, from a stand-in apiserver.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::NodeSelector;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use stayput_pod_update::Amounts;
use stayput_standin::apiserver::{ApiServer, Fault, How};

use super::*;
use crate::metrics::Metrics;
use crate::observe::snapshot::pod as seen;
use crate::pods::Reading;

const PORT: u16 = 9199;

struct Fixture {
    server: ApiServer,
    client: Client,
    api: Apiserver,
    owner: String,
    /// How long the apiserver is asked.
    window: Duration,
}

async fn create<K>(api: Api<K>, object: Value) -> K
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let object = serde_json::from_value(object).expect("an object of this kind");
    api.create(&PostParams::default(), &object).await.expect("it is created")
}

fn template(node_selector: Value) -> Value {
    json!({"spec": {
        "containers": [{
            "name": "search", "image": "search",
            "resources": {"requests": {"memory": "4Gi"}},
        }],
        "nodeSelector": node_selector,
    }})
}

impl Fixture {
    /// A Kubernetes node of 8 GiB, and a set whose template has got a node selector.
    async fn new() -> Self {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let client = server.client();
        let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
        let nodes: Api<Node> = Api::all(client.clone());
        let node = json!({"metadata": {"name": "n1", "labels": {"disk": "ssd"}}});
        create(nodes.clone(), node).await;
        let status = json!({"status": {"allocatable": {"memory": "8Gi", "pods": "10"}}});
        let params = PatchParams::default();
        nodes.patch_status("n1", &params, &Patch::Merge(status)).await.expect("it is taken");
        for (revision, selector) in [("logs-1", json!({})), ("logs-2", json!({"disk": "ssd"}))] {
            let object = json!({
                "metadata": {"name": revision}, "revision": 1,
                "data": {"spec": {"template": template(selector)}},
            });
            let revisions = Api::<ControllerRevision>::namespaced(client.clone(), "default");
            create(revisions, object).await;
        }
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "default");
        let set = create(
            sets.clone(),
            json!({
                "metadata": {"name": "logs"},
                "spec": {
                    "replicas": 3, "serviceName": "logs", "selector": {"matchLabels": {}},
                    "updateStrategy": {"type": "OnDelete"}, "template": template(json!({})),
                },
            }),
        )
        .await;
        let status = json!({"status": {
            "replicas": 3, "observedGeneration": set.metadata.generation, "updateRevision": "logs-2",
        }});
        sets.patch_status("logs", &params, &Patch::Merge(status)).await.expect("it is taken");
        let window = Duration::from_secs(60);
        Self { server, client, api, owner: set.metadata.uid.expect("a uid"), window }
    }

    /// A pod of the set on the node; its volume is there, or anywhere in a zone.
    async fn pod(&self, name: &str, volume_key: &str) -> Arc<PodFacts> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let term =
            json!({"matchExpressions": [{"key": volume_key, "operator": "In", "values": ["a"]}]});
        let affinity = json!({"required": {"nodeSelectorTerms": [term]}});
        let volume = json!({"metadata": {"name": name}, "spec": {"nodeAffinity": affinity}});
        create(volumes, volume).await;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), "default");
        let claim = json!({"metadata": {"name": name}, "spec": {"volumeName": name}});
        create(claims, claim).await;
        let mut pod = template(json!({}));
        pod["metadata"] = json!({
            "name": name, "labels": {"controller-revision-hash": "logs-1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": self.owner,
                "controller": true,
            }],
        });
        pod["spec"]["nodeName"] = json!("n1");
        let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
        pod["spec"]["volumes"] = json!([claim]);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let made = create(pods, pod).await;
        let reading = Reading { updates: true, ..Reading::default() };
        Arc::new(PodFacts::of(&made, &reading).expect("its facts"))
    }

    /// Something else on the node.
    async fn neighbour(&self, memory: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let resources = json!({"requests": {"memory": memory}});
        let container = json!({"name": "a", "image": "a", "resources": resources});
        let pod = json!({
            "metadata": {"name": "neighbour"},
            "spec": {"nodeName": "n1", "containers": [container]},
        });
        create(pods, pod).await;
    }

    /// What is found out of these pods.
    async fn rooms(&self, pods: &[Arc<PodFacts>]) -> Vec<Known<Option<String>>> {
        let (rooms, all) = self.read(pods).await;
        all.iter().map(|pod| rooms.why_not(pod)).collect()
    }

    async fn read(&self, pods: &[Arc<PodFacts>]) -> (Rooms, Vec<restart::Pod>) {
        self.read_with(pods, None).await
    }

    /// The same, where the pods lack this instead of what their template lacks.
    async fn read_with(
        &self,
        pods: &[Arc<PodFacts>],
        lacks: Option<&restart::PodUpdate>,
    ) -> (Rooms, Vec<restart::Pod>) {
        let ledger = restart::Ledger::default();
        let must_read = BTreeSet::new();
        let ages = Ages::of(&ledger, &must_read, true, pods.len());
        let mut owners = Owners::default();
        owners.read(&self.api, "default", pods, &ages, &BTreeSet::new()).await;
        let mut all: Vec<_> = pods.iter().map(|facts| seen(facts)).collect();
        for (pod, facts) in all.iter_mut().zip(pods) {
            pod.update = match lacks {
                Some(lacks) => Ok(Some(lacks.clone())),
                None => owners.update(facts, PORT, &[]),
            };
            let update = pod.update.as_ref().expect("it is known");
            let step = update.as_ref().map(|update| update.step);
            let needs_room = matches!(step, Some(UpdateStep::Replace | UpdateStep::Resize));
            assert!(needs_room, "{:?}", pod.update);
        }
        let steps = BTreeSet::from([UpdateStep::Replace, UpdateStep::Resize]);
        let policy = Policy { update: steps, ..Policy::default() };
        let both: Vec<_> = pods.iter().zip(&all).collect();
        let mut rooms = Rooms::default();
        let end = Instant::now() + self.window;
        rooms.read(&self.api, &policy, &both, &owners, &ages, end).await;
        (rooms, all)
    }

    /// Whether these pods can be deleted; none is.
    async fn deletable(&self, pods: &[Arc<PodFacts>]) -> Vec<Option<String>> {
        let (rooms, all) = self.read(pods).await;
        all.iter().map(|pod| rooms.undeletable(&pod.uid)).collect()
    }

    fn reads(&self, resource: &str) -> u64 {
        self.server.counts().matching(|asked| asked.verb == "get" && asked.resource == resource)
    }
}

#[tokio::test] // proves UPDATE-9
async fn the_node_of_a_local_volume_is_read_once_and_that_of_any_other_volume_never() {
    let fixture = Fixture::new().await;
    let anywhere = fixture.pod("logs-0", "topology.kubernetes.io/zone").await;
    assert_eq!(fixture.rooms(std::slice::from_ref(&anywhere)).await, [Ok(None)]);
    assert_eq!((fixture.reads("persistentvolumes"), fixture.reads("nodes")), (1, 0));
    let there = [
        anywhere,
        fixture.pod("logs-1", "kubernetes.io/hostname").await,
        fixture.pod("logs-2", "kubernetes.io/hostname").await,
    ];
    // Each has room in its own place, and not beside the other two.
    let found = fixture.rooms(&there).await;
    assert_eq!(found[0], Ok(None));
    let why = found[1].clone().expect("it is known").expect("it does not fit");
    assert!(
        why.contains("the Kubernetes node n1, and another pod in the place of logs-1"),
        "{why}"
    );
    assert!(why.contains("4096 MiB memory of which 0 MiB are left"), "{why}");
    assert_eq!(fixture.reads("nodes"), 1, "for both pods");
}

#[tokio::test] // proves UPDATE-8
async fn the_apiserver_is_asked_whether_it_would_delete_a_pod_and_deletes_none() {
    let fixture = Fixture::new().await;
    let pod = [fixture.pod("logs-0", "topology.kubernetes.io/zone").await];
    assert_eq!(fixture.deletable(&pod).await, [None]);
    let pods: Api<Pod> = Api::namespaced(fixture.client.clone(), "default");
    let there = pods.get("logs-0").await.expect("it is there");
    assert_eq!(there.metadata.deletion_timestamp, None);

    let forbidden = Fault::new(How::Refuse(403)).verb("delete").resource("pods");
    fixture.server.inject(forbidden);
    let before = fixture.reads("persistentvolumeclaims");
    let why = fixture.deletable(&pod).await[0].clone().expect("it is forbidden");
    assert!(
        why.contains("give the reconciler's service account the roles of deploy/replace"),
        "{why}"
    );
    assert_eq!(fixture.reads("persistentvolumeclaims"), before, "nothing else is of interest then");
    // What is not answered may be forbidden as well.
    fixture.server.inject(Fault::new(How::Refuse(500)).verb("delete").resource("pods"));
    assert!(fixture.deletable(&pod).await[0].is_some());
    assert!(fixture.server.is_faultless());
    // Another one has its name by now.
    pods.delete("logs-0", &DeleteParams::default().grace_period(0)).await.expect("it is deleted");
    assert_eq!(fixture.deletable(&pod).await, [None]);
}

#[tokio::test] // proves UPDATE-9
async fn what_the_others_there_request_counts_and_so_does_a_cordon() {
    let fixture = Fixture::new().await;
    let pod = [fixture.pod("logs-1", "kubernetes.io/hostname").await];
    assert_eq!(fixture.rooms(&pod).await, [Ok(None)]);
    fixture.neighbour("5Gi").await;
    let why = fixture.rooms(&pod).await[0].clone().expect("it is known").expect("it does not fit");
    assert!(why.contains("4096 MiB memory of which 3072 MiB are left"), "{why}");
    let nodes: Api<Node> = Api::all(fixture.client.clone());
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch("n1", &PatchParams::default(), &cordon).await.expect("it is taken");
    let why = fixture.rooms(&pod).await[0].clone().expect("it is known").expect("it does not fit");
    assert!(why.contains("kubectl uncordon n1"), "{why}");
}

#[tokio::test] // proves UPDATE-9
async fn a_node_that_is_gone_takes_nobody_and_what_cannot_be_read_is_not_known() {
    let fixture = Fixture::new().await;
    let pod = [fixture.pod("logs-1", "kubernetes.io/hostname").await];
    let nodes: Api<Node> = Api::all(fixture.client.clone());
    nodes.delete("n1", &DeleteParams::default()).await.expect("it is deleted");
    let why = fixture.rooms(&pod).await[0].clone().expect("it is known").expect("it does not fit");
    assert!(why.contains("the node is gone"), "{why}");
    let volumes: Api<PersistentVolume> = Api::all(fixture.client.clone());
    volumes.delete("logs-1", &DeleteParams::default()).await.expect("it is deleted");
    let unknown = fixture.rooms(&pod).await[0].clone().expect_err("it is not known").message;
    assert!(
        unknown.contains("cannot find out whether another pod in the place of logs-1"),
        "{unknown}"
    );
}

#[tokio::test] // proves UPDATE-10
async fn a_claim_that_is_being_deleted_keeps_its_pod() {
    let fixture = Fixture::new().await;
    let pod = [fixture.pod("logs-1", "topology.kubernetes.io/zone").await];
    let (rooms, all) = fixture.read(&pod).await;
    let uids = rooms.claim_uids(&all[0].uid).expect("it is to be replaced");
    assert_eq!(uids.keys().collect::<Vec<_>>(), ["logs-1"]);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(fixture.client.clone(), "default");
    let finalizer = json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}});
    let params = PatchParams::default();
    claims.patch("logs-1", &params, &Patch::Merge(finalizer)).await.expect("it is taken");
    claims.delete("logs-1", &DeleteParams::default()).await.expect("it is taken");
    let why = fixture.rooms(&pod).await[0].clone().expect("it is known").expect("it would be lost");
    assert!(why.contains("its volume claim logs-1 is being deleted"), "{why}");
}

#[tokio::test] // proves UPDATE-67
async fn what_comes_of_the_same_template_requests_what_the_pod_requests() {
    let fixture = Fixture::new().await;
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), "default");
    let status = Patch::Merge(json!({"status": {"updateRevision": "logs-1"}}));
    sets.patch_status("logs", &PatchParams::default(), &status).await.expect("it is taken");
    let facts = [fixture.pod("logs-1", "kubernetes.io/hostname").await];
    // What only its init container reads has changed.
    let update = restart::PodUpdate {
        from: "logs-1".into(),
        to: "logs-1".into(),
        step: UpdateStep::Replace,
        because: vec![],
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: restart::PodPatch::default(),
    };
    let (rooms, all) = fixture.read_with(&facts, Some(&update)).await;
    assert_eq!(rooms.why_not(&all[0]), Ok(None));
    fixture.neighbour("5Gi").await;
    let (rooms, all) = fixture.read_with(&facts, Some(&update)).await;
    let why = rooms.why_not(&all[0]).expect("it is known").expect("it does not fit");
    assert!(why.contains("4096 MiB memory of which 3072 MiB are left"), "{why}");
}

#[tokio::test] // proves UPDATE-6
async fn another_size_needs_room_on_the_node_that_the_pod_is_on() {
    let fixture = Fixture::new().await;
    let facts = [fixture.pod("logs-1", "topology.kubernetes.io/zone").await];
    let size = |memory: &str| Some(json!({"requests": {"memory": memory}}).to_string());
    let found = async |memory: &str| {
        let change = restart::Change { seen: size("4Gi"), wanted: size(memory) };
        let resources = [("search".to_owned(), change)].into();
        let update = restart::PodUpdate {
            from: "logs-1".into(),
            to: "logs-2".into(),
            step: UpdateStep::Resize,
            because: vec![],
            new_container: false,
            data_elsewhere: false,
            settings: None,
            patch: restart::PodPatch { resources, ..restart::PodPatch::default() },
        };
        let (rooms, all) = fixture.read_with(&facts, Some(&update)).await;
        assert_eq!(rooms.claim_uids(&all[0].uid), None, "it keeps its claims");
        rooms.why_not(&all[0])
    };
    assert_eq!(found("8Gi").await, Ok(None));
    fixture.neighbour("2Gi").await;
    assert_eq!(found("6Gi").await, Ok(None));
    let why = found("7Gi").await.expect("it is known").expect("there is no room");
    assert!(why.contains("no room for the new size of logs-1"), "{why}");
    assert!(why.contains("7168 MiB memory of which 6144 MiB are left"), "{why}");
    // A pod that is there stays there.
    let nodes: Api<Node> = Api::all(fixture.client.clone());
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch("n1", &PatchParams::default(), &cordon).await.expect("it is taken");
    assert_eq!(found("6Gi").await, Ok(None));
    // Without the role of deploy/replace it is tried.
    fixture.server.inject(Fault::new(How::Refuse(403)).verb("get").resource("nodes"));
    assert_eq!(found("7Gi").await, Ok(None));
}

#[tokio::test]
async fn what_there_was_no_time_to_ask_is_unknown_and_no_pod_waits_for_it() {
    let mut fixture = Fixture::new().await;
    let pods = [fixture.pod("logs-0", "kubernetes.io/hostname").await];
    fixture.window = Duration::ZERO;
    let unknown = fixture.rooms(&pods).await.remove(0).expect_err("nothing is known");
    assert!(unknown.message.contains("was not checked yet"), "{unknown:?}");
    fixture.server.inject(Fault::new(How::Hang).verb("delete").resource("pods"));
    fixture.window = Duration::from_millis(100);
    assert!(fixture.rooms(&pods).await.remove(0).is_err());
    fixture.window = Duration::from_secs(60);
    assert_eq!(fixture.rooms(&pods).await, [Ok(None)]);
}

#[tokio::test] // proves UPDATE-8
async fn a_pod_stays_whose_successor_would_be_refused_in_the_words_of_who_refuses_it() {
    let fixture = Fixture::new().await;
    let pods = [
        fixture.pod("logs-0", "topology.kubernetes.io/zone").await,
        fixture.pod("logs-1", "topology.kubernetes.io/zone").await,
    ];
    assert_eq!(fixture.deletable(&pods).await, [None, None]);
    let creates = |asked: &stayput_standin::apiserver::Asked| {
        asked.verb == "create" && asked.resource == "pods"
    };
    let before = fixture.server.counts().matching(creates);
    let denied = "violates PodSecurity \"restricted:latest\"";
    fixture.server.inject(Fault::new(How::Deny(403, denied)).verb("create").times(u32::MAX));
    for why in fixture.deletable(&pods).await {
        let why = why.expect("it is refused");
        assert!(why.contains(denied) && !why.contains("roles"), "{why}");
    }
    assert_eq!(fixture.server.counts().matching(creates), before + 1, "one answers for both");
}

#[tokio::test] // proves UPDATE-8
async fn a_quota_that_the_pod_which_goes_makes_room_in_refuses_nobody() {
    let fixture = Fixture::new().await;
    let pod = fixture.pod("logs-0", "topology.kubernetes.io/zone").await;
    let exceeded = "pods \"logs-0\" is forbidden: exceeded quota: search, requested: pods=1";
    fixture.server.inject(Fault::new(How::Deny(403, exceeded)).verb("create").times(u32::MAX));
    assert_eq!(fixture.deletable(&[pod]).await, [None]);
}

#[tokio::test] // proves UPDATE-9
async fn where_volumes_may_not_be_read_a_pod_is_replaced_all_the_same() {
    let fixture = Fixture::new().await;
    let pod = fixture.pod("logs-0", "kubernetes.io/hostname").await;
    let refused = Fault::new(How::Refuse(403)).verb("get").resource("persistentvolumes");
    fixture.server.inject(refused.times(u32::MAX));
    assert_eq!(fixture.rooms(&[pod]).await, [Ok(None)]);
}

fn object<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object of Kubernetes")
}

#[test] // proves UPDATE-9
fn a_volume_is_on_one_node_if_its_affinity_selects_one_alone() {
    let volume = |key: &str| -> NodeSelector {
        let term = json!([{"key": key, "operator": "In", "values": ["a"]}]);
        object(json!({"nodeSelectorTerms": [{"matchExpressions": term}]}))
    };
    let is_on_one_node = |key, nodes: Option<&[_]>| is_on_one_node(&volume(key), nodes);
    let by_name = |key| is_on_one_node(key, None);
    assert!(by_name("kubernetes.io/hostname"));
    assert!(by_name("topology.topolvm.io/node"));
    assert!(!by_name("topology.kubernetes.io/zone"));

    let node = |name: &str, key: &str, value: &str| -> PartialObjectMeta<Node> {
        object(json!({"metadata": {"name": name, "labels": {key: value}}}))
    };
    for key in [
        "topology.csi.vmware.com/k8s-zone",
        "csi.hetzner.cloud/location",
        "topology.kubernetes.io/zone",
        "topology.topolvm.io/node",
    ] {
        let nodes = ["a", "a", "b"].map(|value| node("n", key, value));
        assert!(!is_on_one_node(key, Some(&nodes)), "{key}");
        let nodes = ["a", "b", "b"].map(|value| node("n", key, value));
        assert!(is_on_one_node(key, Some(&nodes)), "{key}");
    }
    // Its node is gone.
    let others = [node("n", "topology.topolvm.io/node", "b")];
    assert!(is_on_one_node("topology.topolvm.io/node", Some(&others)));
    assert!(!is_on_one_node("topology.kubernetes.io/zone", Some(&others)));
}

#[test] // proves UPDATE-9
fn a_pod_requests_what_its_containers_do_or_its_init_containers_if_that_is_more() {
    let container = |name: &str, kind: &str, memory: &str| json!({"name": name, "image": name, "resources": {kind: {"memory": memory}}});
    let mut sidecar = container("s", "requests", "1Gi");
    sidecar["restartPolicy"] = json!("Always");
    let memory = |init: &[Value]| {
        let containers = [container("a", "limits", "11Gi")];
        requests_of(&object(json!({"containers": containers, "initContainers": init})))
    };
    let of = |memory| Amounts::of([("memory", memory), ("pods", "1")]);
    assert_eq!(memory(&[]), of("11Gi"));
    assert_eq!(memory(std::slice::from_ref(&sidecar)), of("12Gi"));
    assert_eq!(memory(&[sidecar, container("i", "requests", "12Gi")]), of("13Gi"));
}

#[test] // proves UPDATE-9
fn a_cordon_counts_unless_it_is_tolerated() {
    let node: Node = object(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}}));
    let why =
        |tolerations| cordon(&node, &object(json!({"containers": [], "tolerations": tolerations})));
    assert!(why(json!([])).is_some_and(|why| why.contains("`kubectl uncordon n`")));
    assert!(why(json!([{"key": "a", "operator": "Exists"}])).is_some());
    assert_eq!(why(json!([{"operator": "Exists"}])), None);
}
