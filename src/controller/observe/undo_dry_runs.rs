//! Dry runs of undoing a pod patch: would the apiserver give a pod the images and sizes again that it had
//! before an update? If it refuses, repeating the rollback would keep the engine stopped.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use stayput_restart::{self as restart, Ledger, PodPatch, Unreturnable, to_be_set_back};

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::execute::patches::{self, On};
use crate::failure::Failure;
use crate::pods::PodFacts;

/// Refused rollbacks, by uid of the pod.
#[derive(Debug, Default)]
pub(super) struct UndoDryRuns(BTreeMap<String, Unreturnable>);

impl UndoDryRuns {
    /// Makes a dry run for each pod that is to be rolled back.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        ledger: &Ledger,
        pods: &[(&Arc<PodFacts>, &restart::Pod)],
    ) {
        let due =
            pods.iter().filter_map(|(facts, pod)| Some((facts, to_be_set_back(ledger, pod)?)));
        let ask = async |(facts, patch): (&&Arc<PodFacts>, PodPatch)| match ask(api, facts, &patch)
            .await
        {
            Ok(Err(error)) if is_definite(&error) => {
                let why = error.to_string();
                Some((facts.uid.clone(), Unreturnable { patch, why }))
            }
            Ok(Ok(()) | Err(_)) | Err(_) => None,
        };
        let answers = join_limited(due.map(ask).collect()).await;
        self.0 = answers.into_iter().flatten().collect();
    }

    /// The refused rollback of this pod.
    pub(super) fn of(&self, uid: &str) -> Option<Box<Unreturnable>> {
        self.0.get(uid).cloned().map(Box::new)
    }
}

/// True if the apiserver would refuse the next time, too. A passing error, such as a token that one apiserver
/// of several does not take yet, is worth a retry.
fn is_definite(error: &ApiError) -> bool {
    let may_pass = error.is_no_answer()
        || error.is_conflict()
        || error.is_server_error()
        || error.is_unauthorized();
    !may_pass && !error.is_not_found()
}

async fn ask(
    api: &Apiserver,
    pod: &PodFacts,
    patch: &PodPatch,
) -> Result<Result<(), ApiError>, Failure> {
    let PodPatch { images, resources, .. } = patch;
    if !resources.is_empty() {
        let patch = patches::resources(pod, On::AnyVersion, resources)?;
        return Ok(api.try_to_resize_pod(&pod.namespace, &pod.name, patch).await.map(drop));
    }
    let patch = patches::images(pod, On::AnyVersion, images)?;
    Ok(api.try_to_patch_pod(&pod.namespace, &pod.name, patch).await.map(drop))
}
