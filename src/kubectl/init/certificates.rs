//! The managers' certificates: made here, or ordered from cert-manager.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use stayput_certificates::names::{MANAGED_BY, SecretNames};
use stayput_certificates::{Problem, decide};
use stayput_kube_access::certificates::{Secrets, is_ours};

use crate::apiserver::ApiError;
use crate::apiserver::kind::Kind;
use crate::init::made::Made;
use crate::init::{InitError, InitResult};

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
        authority: read(made, &names.authority).await?,
        trusted: read(made, &names.trusted).await?,
        serving: read(made, &names.serving).await?,
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
    for problem in problems {
        match problem {
            Problem::Unusable { object, .. } | Problem::Expired { object, .. }
                if object == name =>
            {
                return (InitResult::Missing, problem.to_string());
            }
            _ => {}
        }
    }
    if is_ours(&there.metadata) {
        (InitResult::Unchanged, use_of.to_owned())
    } else {
        let message = format!("it was not made by stayput, which does not renew it; {use_of}");
        (InitResult::Left, message)
    }
}

async fn read(made: &Made<'_>, name: &str) -> Result<Option<Secret>, InitError> {
    let there = made.find(Kind::Secret, name).await?;
    there.map(|there| there.try_parse()).transpose().map_err(InitError::Answer)
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
