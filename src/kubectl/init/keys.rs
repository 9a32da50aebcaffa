//! The apiserver's public keys, by which managers check the reconciler's tokens.

use k8s_openapi::api::core::v1::ConfigMap;
use stayput_certificates::Problem;
use stayput_certificates::key_set::{KeySet, KeySetFacts, Unpublished, decide};
use stayput_certificates::names::{KEY_SET, SecretNames};
use stayput_kube_access::certificates::{
    DISCOVERY_PATH, KEY_SET_PATH, held, key_set_object, published,
};

use crate::apiserver::ApiError;
use crate::apiserver::kind::Kind;
use crate::apiserver::server::document;
use crate::init::made::Made;
use crate::init::{InitError, InitResult};
use crate::session::Session;

const USE: &str = "the apiserver's public keys; managers check the reconciler's tokens with them";

pub(crate) async fn make(
    made: &mut Made<'_>,
    names: &SecretNames,
    now: u64,
) -> Result<(), InitError> {
    let there = made.find(Kind::ConfigMap, KEY_SET).await?;
    let there: Option<ConfigMap> =
        there.map(|there| there.try_parse()).transpose().map_err(InitError::Answer)?;
    let decision = decide(&KeySetFacts {
        namespace: names.namespace.clone(),
        cluster: names.cluster.clone(),
        now,
        published: read(made.session).await.unwrap_or_else(|error| Err(error.to_string())),
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

async fn read(session: &Session) -> Result<Result<KeySet, String>, ApiError> {
    let discovery = document(session, DISCOVERY_PATH).await?;
    let keys = document(session, KEY_SET_PATH).await?;
    Ok(published(&discovery, &keys))
}
