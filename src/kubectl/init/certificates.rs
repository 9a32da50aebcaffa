//! The managers' certificates, made here or ordered from cert-manager; the apiserver's public keys, by which managers
//! check the reconciler's tokens; and the reconciler's rights, also to renew these objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use stayput_certificates::key_set::{KeySet, KeySetFacts, Unpublished};
use stayput_certificates::names::{KEY_SET, MANAGED_BY, SecretNames};
use stayput_certificates::{Problem, decide, key_set};
use stayput_kube_access::certificates::{
    DISCOVERY_PATH, KEY_SET_PATH, Secrets, cluster_role_binding, held, is_ours, key_set_object,
    published, role, role_binding,
};
use stayput_kube_access::names::reconciler;

use crate::apiserver::ApiError;
use crate::init::made::{Kind, Made};
use crate::init::{InitError, InitResult};
use crate::session::Session;

/// Limit of the steps, more than there are.
const MAX_STEPS: usize = 8;

/// Creates or renews CA and certificate, if they are absent or due.
pub(crate) async fn make(
    made: &mut Made<'_>,
    names: &SecretNames,
    server_name: &str,
    now: u64,
) -> Result<(), InitError> {
    let mut secrets = Secrets {
        authority: made.find_as(Kind::Secret, &names.authority).await?,
        trusted: made.find_as(Kind::Secret, &names.trusted).await?,
        serving: made.find_as(Kind::Secret, &names.serving).await?,
    };
    let mut written = BTreeMap::new();
    let mut problems = Vec::new();
    for _ in 0..MAX_STEPS {
        let mut facts = secrets.facts(names, server_name, now);
        facts.may_create = true;
        let decision = decide(&facts);
        problems = decision.problems;
        let Some(step) = decision.step else { break };
        let change = secrets.change(&step, names, server_name, now)?;
        let there = secrets.of(&step);
        let (result, object) = match &*there {
            None => (InitResult::Made, made.create(Kind::Secret, &change.object()).await?),
            Some(there) => {
                let patch = change.patch(there);
                (InitResult::Changed, made.change(Kind::Secret, &change.name, &patch).await?)
            }
        };
        *there = Some(object.try_parse().map_err(InitError::Answer)?);
        written.insert(change.name, result);
    }
    let uses = [
        (&names.authority, &secrets.authority, "the CA's key; no pod mounts it"),
        (&names.trusted, &secrets.trusted, "the CA; the reconciler checks managers with it"),
        (&names.serving, &secrets.serving, "the certificate of the managers"),
    ];
    for (name, there, use_of) in uses {
        let (result, message) = match (written.get(name), there) {
            (Some(result), _) => (*result, use_of.to_owned()),
            (None, there) => state(name, there.as_ref(), &problems, use_of),
        };
        made.note(Kind::Secret, name, result, &message);
    }
    Ok(())
}

/// Result and text for a Secret that was not written.
fn state(
    name: &str,
    there: Option<&Secret>,
    problems: &[Problem],
    use_of: &str,
) -> (InitResult, String) {
    let Some(there) = there else {
        let why = problems.first().map(ToString::to_string);
        return (InitResult::Missing, why.unwrap_or_default());
    };
    let is_about_it = |problem: &&Problem| match problem {
        Problem::Unusable { object, .. } | Problem::Expired { object, .. } => object == name,
        _ => false,
    };
    if let Some(problem) = problems.iter().find(is_about_it) {
        (InitResult::Missing, problem.to_string())
    } else if is_ours(&there.metadata) {
        (InitResult::Unchanged, use_of.to_owned())
    } else {
        let message = format!("it was not made by stayput, which does not renew it; {use_of}");
        (InitResult::Left, message)
    }
}

/// Orders the certificate from cert-manager. `issuer` is the name of an Issuer, or
/// `ClusterIssuer/NAME`.
pub(crate) async fn order(
    made: &mut Made<'_>,
    names: &SecretNames,
    issuer: &str,
    server_name: &str,
) -> Result<(), ApiError> {
    let (kind, issuer) = issuer.split_once('/').unwrap_or(("Issuer", issuer));
    let (label, value) = MANAGED_BY;
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": { "name": names.serving, "labels": { label: value } },
        "spec": {
            "secretName": names.serving,
            "dnsNames": [server_name],
            "issuerRef": { "kind": kind, "name": issuer },
            "privateKey": { "algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always" },
            "usages": ["digital signature", "server auth"],
        },
    });
    let use_of = "the certificate of the managers, which cert-manager makes and renews";
    made.ensure(Kind::Certificate, certificate, use_of).await
}

const USE: &str = "the apiserver's public keys; managers check the reconciler's tokens with them";

pub(crate) async fn make_keys(
    made: &mut Made<'_>,
    names: &SecretNames,
    now: u64,
) -> Result<(), InitError> {
    let there: Option<ConfigMap> = made.find_as(Kind::ConfigMap, KEY_SET).await?;
    let decision = key_set::decide(&KeySetFacts {
        namespace: names.namespace.clone(),
        cluster: names.cluster.clone(),
        now,
        published: read_keys(made.session).await.unwrap_or_else(|error| Err(error.to_string())),
        held: there.as_ref().map(held),
        unpublished: Unpublished::default(),
    });
    let is_there = there.is_some();
    let (result, message) = match (decision.write, decision.problem) {
        (Some(set), _) => {
            let object = key_set_object(&set, there.as_ref());
            if is_there {
                made.change(Kind::ConfigMap, KEY_SET, &object).await?
            } else {
                made.create(Kind::ConfigMap, &object).await?
            };
            (if is_there { InitResult::Changed } else { InitResult::Made }, USE.to_owned())
        }
        (None, Some(problem)) => {
            let is_unknown = matches!(problem, Problem::KeysUnknown { .. });
            let result =
                if is_unknown && is_there { InitResult::Unchanged } else { InitResult::Missing };
            (result, problem.to_string())
        }
        (None, None) if there.is_some_and(|there| !held(&there).is_ours) => {
            let message = "it was not made by stayput, so it is not renewed when the apiserver's keys \
                           change: delete it and run `init` again";
            (InitResult::Left, message.to_owned())
        }
        (None, None) => (InitResult::Unchanged, USE.to_owned()),
    };
    made.note(Kind::ConfigMap, KEY_SET, result, &message);
    Ok(())
}

async fn read_keys(session: &Session) -> Result<Result<KeySet, String>, ApiError> {
    let discovery = session.api().document(DISCOVERY_PATH).await?;
    let keys = session.api().document(KEY_SET_PATH).await?;
    Ok(published(&discovery, &keys))
}

/// Creates the rights; with `secrets`, also for the certificates; with `declared`, also to make nodes.
pub(crate) async fn make_rights(
    made: &mut Made<'_>,
    names: &SecretNames,
    secrets: bool,
    declared: bool,
) -> Result<(), ApiError> {
    let renews = "the reconciler's right to renew these objects and no others";
    made.ensure(Kind::Role, role(names, secrets), renews).await?;
    made.ensure(Kind::RoleBinding, role_binding(names), renews).await?;
    let restarts = "the reconciler's rights in this namespace, to restart clusters";
    let binding = cluster_role_binding(reconciler::RESTARTS);
    made.ensure(Kind::RoleBinding, binding, restarts).await?;
    if declared {
        let makes = "the reconciler's rights in this namespace, to make nodes";
        let binding = cluster_role_binding(reconciler::MAKES);
        made.ensure(Kind::RoleBinding, binding, makes).await?;
    }
    Ok(())
}
