//! Reads the facts. A failed read is a fact, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

use futures_util::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::core::params::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use stayput_kube_access::cluster::{SearchCluster, UpdateMode};
use stayput_kube_access::pod::{Owner, controller, serving_secret, unwatched};
use stayput_pod_update::{IGNORE, Ignore, Source, SourceKind};
use stayput_restart::{Known, Operator, OperatorKind, Unknown};

use crate::apiserver::{self, Apiserver};
use crate::doctor::checks::named_secrets;
use crate::doctor::{ApiserverTime, Facts, Installation, Right, Taken};
use crate::format::now;
use crate::leader::{NAME, NAMESPACE};
use crate::session::Session;
use crate::snapshot::SnapshotAccess;
use crate::view::ClusterView;

/// The way to the snapshots, if the reconciler can be reached.
pub(crate) async fn access(session: &Session, address: Option<&str>) -> Known<SnapshotAccess> {
    known(SnapshotAccess::open(session, address).await)
}

/// Name of the binding of `deploy/keep-pods`.
const KEEP_PODS: &str = "stayput-keep-pods";

/// Everything that is the same for all SearchClusters.
pub(crate) async fn installation(client: &Client) -> Installation {
    let api = Apiserver::for_kubectl(client.clone());
    let keeps_pods = api.everywhere::<ValidatingAdmissionPolicyBinding>().find(KEEP_PODS).await;
    let replicas = ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"));
    Installation {
        apiserver_time: apiserver_time(client).await,
        definition: known(apiserver::definition(client).await),
        lease: known(api.objects(NAMESPACE).find(NAME).await),
        pods: list(&api, NAMESPACE, &replicas).await,
        namespace: known(api.everywhere::<Namespace>().find(NAMESPACE).await),
        keeps_pods: known(keeps_pods).map(|binding| binding.is_some()),
        policies: list(&api, NAMESPACE, &ListParams::default()).await,
    }
}

/// Everything about one SearchCluster.
pub(crate) async fn read(
    client: &Client,
    cluster: SearchCluster,
    access: &Known<SnapshotAccess>,
    installation: &Installation,
) -> Facts {
    let namespace = cluster.namespace().unwrap_or_default();
    let api = Apiserver::for_kubectl(client.clone());
    let pods = known(apiserver::pods(client, &cluster).await);
    let found = pods.as_deref().unwrap_or_default();
    let mut sets = BTreeMap::new();
    let owners: BTreeSet<String> =
        found.iter().filter_map(Owner::of).map(|owner| owner.name).collect();
    for name in owners {
        let set = known(api.objects(&namespace).find(&name).await);
        sets.insert(name, set);
    }
    let operated = read_operated(&api, &namespace, &sets).await;
    let mut secrets = BTreeMap::new();
    let spec = cluster.completed_spec().into_owned();
    let port = spec.manager.port;
    let serving = found.iter().filter_map(|pod| serving_secret(pod, port));
    let named = named_secrets(&spec).into_iter().map(|named| named.name.to_owned());
    for name in named.chain(serving).collect::<BTreeSet<String>>() {
        let secret = known(api.objects(&namespace).find(&name).await);
        secrets.insert(name, secret);
    }
    let ignored = read_ignored(&api, &namespace, found, port).await;
    let all = ListParams::default();
    let view = ClusterView::from_objects(&cluster, found);
    Facts {
        snapshot: snapshot(access, &view).await,
        policies: list(&api, &namespace, &all).await,
        budgets: list(&api, &namespace, &all).await,
        rights: read_rights(&api, &cluster, pods.as_deref().unwrap_or_default()).await,
        installation: installation.clone(),
        now: now(),
        pods,
        sets,
        operated,
        secrets,
        ignored,
        cluster,
    }
}

fn known<T>(answer: Result<T, impl Display>) -> Known<T> {
    answer.map_err(|error| Unknown { message: error.to_string() })
}

/// All objects of a kind in a namespace.
async fn list<K>(api: &Apiserver, namespace: &str, params: &ListParams) -> Known<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + DeserializeOwned,
{
    known(api.objects(namespace).list(params).await).map(|list| list.items)
}

async fn snapshot(access: &Known<SnapshotAccess>, view: &ClusterView) -> Known<Taken> {
    let asked = now();
    let saved = known(access.as_ref().map_err(Unknown::clone)?.snapshot(view).await)?;
    Ok(Taken { asked, saved, answered: now() })
}

async fn apiserver_time(client: &Client) -> Known<ApiserverTime> {
    let asked = now();
    let server = known(apiserver::time(client).await)?;
    Ok(ApiserverTime { asked, server, answered: now() })
}

/// The annotations of the objects that can be read.
async fn read_ignored(
    api: &Apiserver,
    namespace: &str,
    pods: &[Pod],
    manager_port: u16,
) -> BTreeMap<Source, Ignore> {
    let named = pods.iter().flat_map(|pod| unwatched(pod, manager_port));
    let named: BTreeSet<Source> = named.map(|one| one.source).collect();
    let mut ignored = BTreeMap::new();
    for source in named {
        let annotations = match source.kind {
            SourceKind::Secret => {
                let found = api.objects::<Secret>(namespace).find(&source.name).await;
                found.ok().flatten().map(|secret| secret.annotations().clone())
            }
            SourceKind::ConfigMap => {
                let found = api.objects::<ConfigMap>(namespace).find(&source.name).await;
                found.ok().flatten().map(|map| map.annotations().clone())
            }
        };
        if let Some(annotations) = annotations {
            ignored.insert(source, Ignore::parse(annotations.get(IGNORE).map(String::as_str)));
        }
    }
    ignored
}

/// The objects, by kind and name.
async fn read_operated(
    api: &Apiserver,
    namespace: &str,
    sets: &BTreeMap<String, Known<Option<StatefulSet>>>,
) -> BTreeMap<(String, String), Known<Option<DynamicObject>>> {
    let mut found = BTreeMap::new();
    let sets = sets.values().filter_map(|set| set.as_ref().ok()?.as_ref());
    for owner in sets.filter_map(controller) {
        let is_ours = owner.api_version.starts_with("stayput.dev/");
        let key = (owner.kind.clone(), owner.name.clone());
        if is_ours || found.contains_key(&key) {
            continue;
        }
        let (group, version) =
            owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, &owner.kind),
            &plural(&owner.kind),
        );
        found.insert(key, known(api.dynamic(&resource, namespace).find(&owner.name).await));
    }
    found
}

/// Plural name of a kind in the operators' definitions.
fn plural(kind: &str) -> String {
    let name = kind.to_lowercase();
    if name == "elasticsearch" { name + "es" } else { name + "s" }
}

const ALWAYS: [Right; 10] = [
    right("patch", "stayput.dev", "searchclusters", ""),
    right("update", "stayput.dev", "searchclusters", "status"),
    right("list", "", "pods", ""),
    right("watch", "", "pods", ""),
    right("patch", "", "pods", ""),
    right("get", "", "secrets", ""),
    right("get", "", "configmaps", ""),
    right("get", "apps", "statefulsets", ""),
    right("watch", "apps", "statefulsets", ""),
    right("create", "events.k8s.io", "events", ""),
];
/// Additional rights with `spec.update`.
const UPDATES: [Right; 2] =
    [right("get", "apps", "controllerrevisions", ""), right("patch", "", "pods", "resize")];
/// Additional rights with `spec.nodeSets`.
const DECLARED: [Right; 5] = [
    right("patch", "apps", "statefulsets", ""),
    right("patch", "", "secrets", ""),
    right("patch", "", "configmaps", ""),
    right("patch", "", "services", ""),
    right("list", "", "persistentvolumeclaims", ""),
];

const fn right(
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
) -> Right {
    Right { verb, group, resource, subresource }
}

/// Each right, and the answer if the reconciler has it.
async fn read_rights(
    api: &Apiserver,
    cluster: &SearchCluster,
    pods: &[Pod],
) -> Vec<(Right, Known<bool>)> {
    let mut needed = ALWAYS.to_vec();
    let operators =
        pods.iter().filter_map(|pod| Operator::of_labels(pod.metadata.labels.as_ref()?));
    let kinds: BTreeSet<OperatorKind> = operators.map(|operator| operator.kind).collect();
    let of_object = |kind: OperatorKind| {
        ["get", "watch"].map(|verb| right(verb, kind.group(), kind.plural(), ""))
    };
    needed.extend(kinds.into_iter().flat_map(of_object));
    if cluster.spec.update.mode == UpdateMode::InPlace {
        needed.extend(UPDATES);
    }
    if !cluster.spec.node_sets.is_empty() {
        needed.extend(DECLARED);
    }
    let namespace = cluster.namespace().unwrap_or_default();
    let reviews = api.everywhere();
    let ask = async |right: Right| {
        let answer = known(reviews.create(&review(&namespace, right)).await);
        let is_allowed = |answer: SubjectAccessReview| answer.status.is_some_and(|it| it.allowed);
        (right, answer.map(is_allowed))
    };
    join_all(needed.into_iter().map(ask)).await
}

fn review(namespace: &str, right: Right) -> SubjectAccessReview {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{NAMESPACE}:{NAME}")),
            groups: Some(vec![
                "system:serviceaccounts".into(),
                format!("system:serviceaccounts:{NAMESPACE}"),
                "system:authenticated".into(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                namespace: text(namespace),
                verb: text(right.verb),
                group: text(right.group),
                resource: text(right.resource),
                subresource: text(right.subresource),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}
