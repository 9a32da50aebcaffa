//! Checks that the apiserver keeps each field that we write. It silently drops fields that its definition of
//! the SearchCluster does not have: a debt or a request would be forgotten.
//!
//! Reads the apiserver's OpenAPI document, not the CustomResourceDefinition: everybody may read that, also a
//! reconciler with rights in one namespace only. It is read once; as long as it cannot be read or fields are
//! missing, again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::apiserver::{ApiError, Apiserver};
use stayput_kube_access::cluster::{FieldsOfOneSide, missing_fields};

const PATH: &str = "/openapi/v3/apis/stayput.dev/v1alpha1";
const KIND: &str = "SearchCluster";
/// Interval while fields are missing: a person has to repair that, and waits.
const MISSING_INTERVAL: Duration = Duration::from_secs(10);
/// Interval while the document cannot be read.
const UNREAD_INTERVAL: Duration = Duration::from_secs(60);

/// The fault of the definition, as it was read last.
#[derive(Debug, Clone)]
pub(super) struct Definition(watch::Receiver<Option<Arc<str>>>);

/// Reason why the definition is not known.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("{PATH} is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("{PATH} has no {KIND}")]
    NoKind,
}

impl Definition {
    /// Reads the definition. The future reads it again as long as that is needed.
    pub(super) async fn read(api: Apiserver) -> (Self, impl Future<Output = ()> + use<>) {
        let (sender, receiver) = watch::channel(None);
        let pause = look(&api, &sender).await;
        (Self(receiver), follow(api, sender, pause))
    }

    /// A definition without a fault.
    #[cfg(test)]
    pub(super) fn right_for_test() -> Self {
        Self(watch::Sender::new(None).subscribe())
    }

    /// Message about the fault of the definition; `None` also while the definition is not known.
    pub(super) fn fault(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Completes when the fault changes or is repaired.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The definition is right, and not read again.
            std::future::pending().await
        }
    }
}

async fn follow(api: Apiserver, sender: watch::Sender<Option<Arc<str>>>, pause: Option<Duration>) {
    let mut pause = pause;
    while let Some(time) = pause {
        sleep(time).await;
        pause = look(&api, &sender).await;
    }
}

/// Reads the definition once. Returns the time until the next read, if one is needed.
async fn look(api: &Apiserver, sender: &watch::Sender<Option<Arc<str>>>) -> Option<Duration> {
    let (fault, pause) = match read(api).await {
        Ok(None) => (None, None),
        Ok(Some(missing)) => (Some(fault(&missing)), Some(MISSING_INTERVAL)),
        Err(unread) => {
            tracing::warn!(
                "cannot check the fields of the CustomResourceDefinition, trying again \
                 in {UNREAD_INTERVAL:?}: {unread}"
            );
            return Some(UNREAD_INTERVAL);
        }
    };
    if *sender.borrow() != fault {
        match &fault {
            Some(fault) => tracing::error!("not starting new work: {fault}"),
            None => tracing::info!("the CustomResourceDefinition has all fields now"),
        }
        sender.send_replace(fault);
    }
    pause
}

fn fault(missing: &FieldsOfOneSide) -> Arc<str> {
    format!(
        "the CustomResourceDefinition searchclusters.stayput.dev is older than this reconciler ({}): it \
         has no {missing}, and Kubernetes drops what is written to such a field and refuses what has \
         such a value; with kubectl stayput of this version: `kubectl stayput crd | kubectl apply \
         --server-side --force-conflicts -f -`",
        env!("CARGO_PKG_VERSION")
    )
    .into()
}

async fn read(api: &Apiserver) -> Result<Option<FieldsOfOneSide>, Unread> {
    let document: Value = serde_json::from_str(&api.document(PATH).await?)?;
    let schemas = document["components"]["schemas"].as_object();
    let is_ours = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|kind| kind["kind"] == KIND)
    };
    let schema = schemas.into_iter().flat_map(|all| all.values()).find(is_ours);
    Ok(missing_fields([schema.ok_or(Unread::NoKind)?]))
}
