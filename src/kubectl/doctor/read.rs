//! Reads the facts. A failed read is a fact, too.

mod ignored;
mod operated;
mod rights;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::core::params::ListParams;
use kube::{Client, ResourceExt};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::workload::{is_stateful_set, serving_secret};
use stayput_restart::{Known, Unknown};

use crate::apiserver::objects::Asked;
use crate::apiserver::{ApiError, STATEFUL_SETS, server};
use crate::clock::now;
use crate::doctor::facts::{ApiserverTime, Facts, Taken};
use crate::leader::{NAME, NAMESPACE};
use crate::session::Session;
use crate::view::ClusterView;
use crate::{apiserver, reconciler_client};

/// Everything about one SearchCluster.
pub(crate) async fn read(
    session: &Session,
    cluster: SearchCluster,
    reconciler: Option<&str>,
) -> Facts {
    let client = &session.client;
    let namespace = cluster.namespace().unwrap_or_default();
    let ask = Asked { client, namespace: &namespace };
    let there = Asked { client, namespace: NAMESPACE };
    let pods = known(apiserver::pods(client, &cluster).await);
    let found = pods.as_deref().unwrap_or_default();
    let mut sets = BTreeMap::new();
    for name in owners(found) {
        let set = known(ask.find(STATEFUL_SETS, &name).await);
        sets.insert(name, set);
    }
    let operated = operated::read(&ask, &sets).await;
    let mut secrets = BTreeMap::new();
    let port = cluster.completed_spec().manager.port;
    let serving = found.iter().filter_map(|pod| serving_secret(pod, port));
    for name in named_secrets(&cluster).into_iter().chain(serving) {
        if secrets.contains_key(&name) {
            continue;
        }
        let secret = known(ask.find::<Secret>("secrets", &name).await);
        secrets.insert(name, secret);
    }
    let ignored = ignored::read(&ask, found, port).await;
    let replicas = ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"));
    let reconcilers: Known<Vec<Pod>> = known(there.list("pods", &replicas).await);
    let all = ListParams::default();
    let view = ClusterView::from_objects(&cluster, found);
    Facts {
        snapshot: snapshot(session, reconciler, &view).await,
        apiserver_time: apiserver_time(client).await,
        lease: known(there.find::<Lease>("leases.coordination.k8s.io", NAME).await),
        reconciler_namespace: known(server::find_namespace(client, NAMESPACE).await),
        reconcilers,
        definition: known(server::definition(client).await),
        policies: known(ask.list("networkpolicies.networking.k8s.io", &all).await),
        reconciler_policies: known(there.list("networkpolicies.networking.k8s.io", &all).await),
        budgets: known(ask.list("poddisruptionbudgets.policy", &all).await),
        rights: rights::read(client, &cluster).await,
        now: now(),
        pods,
        sets,
        operated,
        secrets,
        ignored,
        cluster,
    }
}

fn known<T>(answer: Result<T, ApiError>) -> Known<T> {
    answer.map_err(|error| Unknown { message: error.to_string() })
}

async fn snapshot(session: &Session, reconciler: Option<&str>, view: &ClusterView) -> Known<Taken> {
    let asked = now();
    let answer = reconciler_client::snapshot(session, reconciler, view).await;
    let answered = now();
    match answer {
        Ok(saved) => Ok(Taken { asked, saved, answered }),
        Err(error) => Err(Unknown { message: error.to_string() }),
    }
}

async fn apiserver_time(client: &Client) -> Known<ApiserverTime> {
    let asked = now();
    let answer = server::time(client).await;
    let answered = now();
    known(answer).map(|server| ApiserverTime { asked, server, answered })
}

/// Names of the StatefulSets of the pods.
fn owners(pods: &[Pod]) -> BTreeSet<String> {
    let owners = pods.iter().flat_map(ResourceExt::owner_references);
    let sets = owners.filter(|owner| owner.controller == Some(true) && is_stateful_set(owner));
    sets.map(|owner| owner.name.clone()).collect()
}

fn named_secrets(cluster: &SearchCluster) -> BTreeSet<String> {
    let spec = cluster.completed_spec();
    let auth = &spec.manager.auth;
    let all = [
        &spec.engine.credentials_secret,
        &spec.engine.ca_secret,
        &Some(spec.manager.ca_secret.clone()),
        &auth.jwt_key_secret,
        &auth.client_certificate_secret,
    ];
    all.into_iter().flatten().filter(|name| !name.is_empty()).cloned().collect()
}
