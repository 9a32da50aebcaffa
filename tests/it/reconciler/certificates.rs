//! The reconciler renews the managers' certificates and keys, and only those that `init` made.

use std::time::{SystemTime, UNIX_EPOCH};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stayput_certificates::issue::{Pair, authority, read_authorities, read_serving, serving};
use stayput_controller::{Election, Settings};
use stayput_kube_access::cluster::{SearchCluster, crd};
use stayput_standin::apiserver::ApiServer;

use super::fixture::Reconciler;
use super::objects::{NAMESPACE, eventually};

const DAY: u64 = 24 * 3600;
const SECRETS: [&str; 3] = ["logs-manager-ca-key", "logs-manager-ca", "logs-manager-tls"];

/// An apiserver with a SearchCluster that has no pods.
struct World {
    server: ApiServer,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        crds.create(&PostParams::default(), &crd()).await.expect("the definition is taken");
        let world = Self { server, client };
        world
            .create::<SearchCluster>(json!({
                "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
                "metadata": {"name": "logs"},
                "spec": {
                    "pods": {"selector": {"matchLabels": {"app": "logs"}}},
                    "engine": {"scheme": "http"},
                    "manager": {"caSecret": "logs-manager-ca", "auth": {"serviceAccountToken": {}}},
                },
            }))
            .await;
        world
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
        K::DynamicType: Default,
    {
        let object: K = serde_json::from_value(object).expect("an object");
        self.api::<K>().create(&PostParams::default(), &object).await.expect("it is created");
    }

    /// The three Secrets, as `init` made them so many days ago.
    async fn made(&self, days: u64, labels: Value) -> Pair {
        let then = now() - days * DAY;
        let ca = authority("logs", then).expect("a CA");
        let leaf = serving(&ca, "logs", "stayput", then).expect("a certificate");
        let data = [
            json!({"tls.crt": ca.certificate, "tls.key": ca.key}),
            json!({"ca.crt": ca.certificate}),
            json!({"tls.crt": leaf.certificate, "tls.key": leaf.key}),
        ];
        for (name, data) in SECRETS.into_iter().zip(data) {
            let metadata = json!({"name": name, "labels": labels});
            self.create::<Secret>(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data,
            }))
            .await;
        }
        ca
    }

    async fn file(&self, secret: &str, key: &str) -> Vec<u8> {
        let secret = self.api::<Secret>().get(secret).await.expect("it is there");
        secret.data.expect("data").remove(key).expect("the key").0
    }

    async fn versions(&self) -> Vec<Option<String>> {
        let all = self.api::<Secret>().list(&ListParams::default()).await.expect("a list");
        all.items.into_iter().map(|secret| secret.metadata.resource_version).collect()
    }

    /// Waits for the condition with this reason; its status and message.
    async fn until(&self, reason: &str) -> (String, String) {
        eventually(reason, async || {
            let cluster = self.api::<SearchCluster>().get("logs").await.ok()?;
            let conditions = cluster.status?.report.conditions;
            let one = conditions.into_iter().find(|one| one.kind == "CertificatesValid")?;
            (one.reason == reason).then_some((one.status, one.message))
        })
        .await
    }

    /// Waits for an event with this reason that says this.
    async fn until_event(&self, reason: &str, part: &str) {
        eventually(reason, async || {
            let events = self.api::<Event>().list(&ListParams::default()).await.ok()?;
            let is_it = |event: &Event| {
                event.reason.as_deref() == Some(reason)
                    && event.note.as_ref().is_some_and(|note| note.contains(part))
            };
            events.items.iter().any(is_it).then_some(())
        })
        .await;
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn ours() -> Value {
    json!({"app.kubernetes.io/managed-by": "stayput"})
}

#[tokio::test] // proves RESTART-6
async fn a_certificate_near_its_end_is_renewed_and_then_nothing_is_written() {
    let world = World::new().await;
    let ca = world.made(300, ours()).await;
    let old = world.file(SECRETS[2], "tls.crt").await;
    let reconciler = Reconciler::start(world.client.clone());
    world.until_event("CertificateRenewed", "Secret logs-manager-tls: a new certificate").await;
    assert_eq!(world.until("Valid").await.0, "True");
    let new = world.file(SECRETS[2], "tls.crt").await;
    assert_ne!(new, old);
    let read = read_serving(&new, &[ca.certificate.as_bytes()], "stayput").expect("a certificate");
    assert!(read.is_named && read.validity.not_after > now() + 364 * DAY, "{read:?}");
    let by = read_authorities(ca.certificate.as_bytes()).expect("a CA");
    assert_eq!(read.signed_by, Some(by[0].id), "the reconciler needs no other CA");

    let versions = world.versions().await;
    reconciler.end().await;
    // The next process finds everything as it should be: it looks once, at the beginning.
    let requests = || {
        let counts = world.server.counts();
        counts.matching(|asked| asked.verb == "get" && asked.resource == "secrets")
    };
    let before = requests();
    let reconciler = Reconciler::start(world.client.clone());
    eventually("it has looked", async || (requests() >= before + 3).then_some(())).await;
    reconciler.end().await;
    assert_eq!(world.versions().await, versions);
}

/// A replica that does not lead sees the same certificate, and writes nothing until it leads.
#[tokio::test] // proves OPERATE-24
async fn only_the_leader_renews() {
    let world = World::new().await;
    world.made(300, ours()).await;
    let versions = world.versions().await;
    let held = json!({"holderIdentity": "another", "leaseDurationSeconds": 3600});
    world.create::<Lease>(json!({"metadata": {"name": "leader"}, "spec": held})).await;
    let election = Election { namespace: NAMESPACE.into(), name: "leader".into() };
    let settings =
        Settings { name: "test".into(), election: Some(election), ..Settings::default() };
    let reconciler = Reconciler::start_with(world.client.clone(), settings);
    let asked = |resource: &str| {
        let counts = world.server.counts();
        counts.matching(|asked| asked.verb == "get" && asked.resource == resource)
    };
    eventually("it wants to lead again and again", async || (asked("leases") >= 2).then_some(()))
        .await;
    assert_eq!(world.versions().await, versions);
    let free = Patch::Merge(json!({"spec": {"holderIdentity": null}}));
    let leases = world.api::<Lease>();
    leases.patch("leader", &PatchParams::default(), &free).await.expect("it is released");
    world.until_event("CertificateRenewed", "Secret logs-manager-tls: a new certificate").await;
    assert_ne!(world.versions().await, versions);
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-6
async fn a_ca_near_its_end_is_followed_by_another_and_both_are_trusted() {
    let world = World::new().await;
    let old = world.made(7 * 365, ours()).await;
    let reconciler = Reconciler::start(world.client.clone());
    world.until_event("CertificateRenewed", "the new CA is trusted beside the last one").await;
    world.until("Valid").await;
    let trusted = read_authorities(&world.file(SECRETS[1], "ca.crt").await).expect("CAs");
    let old = read_authorities(old.certificate.as_bytes()).expect("a CA");
    let new = read_authorities(&world.file(SECRETS[0], "tls.crt").await).expect("a CA");
    assert_eq!(trusted, [new, old].concat());
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-9
async fn what_another_made_is_watched_and_what_is_gone_is_missed() {
    let world = World::new().await;
    world.made(360, json!({})).await;
    let versions = world.versions().await;
    let reconciler = Reconciler::start(world.client.clone());
    let (status, message) = world.until("ExpiresSoon").await;
    assert_eq!(status, "False");
    assert!(message.contains("Secret logs-manager-tls expires at"), "{message}");
    world.until_event("CertificateNotRenewed", "expires at").await;
    assert_eq!(world.versions().await, versions);
    reconciler.end().await;

    let world = World::new().await;
    world.made(1, ours()).await;
    let secrets = world.api::<Secret>();
    secrets.delete(SECRETS[0], &DeleteParams::default()).await.expect("it is deleted");
    let reconciler = Reconciler::start(world.client.clone());
    let (_, message) = world.until("SecretAbsent").await;
    assert!(message.contains("`kubectl stayput -n default init logs` makes it again"), "{message}");
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-8
async fn other_keys_of_the_apiserver_are_given_to_managers() {
    let world = World::new().await;
    world.made(1, ours()).await;
    let first = world.server.key_set();
    let data = json!({"issuer": world.server.issuer(), "jwks.json": first.to_string()});
    let metadata = json!({"name": "cluster-jwks", "labels": ours()});
    world.create::<ConfigMap>(json!({"metadata": metadata, "data": data})).await;
    world.server.rotate_keys();
    let reconciler = Reconciler::start(world.client.clone());
    world.until_event("KeysRenewed", "ConfigMap cluster-jwks").await;
    let map = world.api::<ConfigMap>().get("cluster-jwks").await.expect("it is there");
    let written: Value = serde_json::from_str(&map.data.expect("data")["jwks.json"]).expect("JSON");
    let both = [world.server.key_set()["keys"][0].clone(), first["keys"][0].clone()];
    assert_eq!(written["keys"], json!(both), "the last one is kept for tokens under way");
    reconciler.end().await;
}
