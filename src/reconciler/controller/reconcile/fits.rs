//! Before a pod is replaced: a pod whose volume is on one node must fit there again, or it would
//! stay pending while its data waits.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::controller::failure::Failure;
use crate::controller::fit::{is_on_one_node, lacking};
use crate::controller::observe::Observer;
use crate::controller::pods::Facts;
use stayput_restart::{Action, Ledger, UpdateStep};

/// Those of the actions that replace no pod, or one that fits where its volume is; and why the last
/// of the others is refused.
pub(super) async fn fitting<'a>(
    observer: &Observer,
    actions: Vec<&'a Action>,
    ledger: &Ledger,
) -> (Vec<&'a Action>, Option<Failure>) {
    let (mut fitting, mut refused) = (Vec::new(), None);
    for action in actions {
        let pod = action.pod().filter(|uid| is_replaced(ledger, uid));
        let pod = pod.and_then(|uid| observer.pods.by_uid(uid).cloned());
        match pod {
            None => fitting.push(action),
            Some(pod) => match fits(observer, &pod).await {
                Ok(()) => fitting.push(action),
                Err(failure) => refused = Some(failure),
            },
        }
    }
    (fitting, refused)
}

/// Whether the pod's turn in a restart replaces it.
fn is_replaced(ledger: &Ledger, uid: &str) -> bool {
    let member = ledger.members().find(|member| member.pod_uid == uid);
    let update = member.and_then(|member| member.update.as_ref());
    update.is_some_and(|fixed| fixed.update.step == UpdateStep::Replace)
}

async fn fits(observer: &Observer, pod: &Arc<Facts>) -> Result<(), Failure> {
    let Some(live) = &pod.live else { return Ok(()) };
    let mut is_bound = false;
    for claim in live.claims() {
        let claim: PersistentVolumeClaim = observer.api.get(&pod.namespace, claim).await?;
        let volume = claim.spec.and_then(|spec| spec.volume_name);
        if let Some(volume) = volume {
            is_bound |= is_on_one_node(&observer.api.volume(&volume).await?);
        }
    }
    let Some(name) = live.kubernetes_node.as_deref().filter(|_| is_bound) else { return Ok(()) };
    let would_not_fit = |lacks: String| Failure::WouldNotFit {
        pod: pod.name.clone(),
        node: name.to_owned(),
        lacks,
    };
    let Some(template) = observer.owners.wanted_template(pod) else {
        return Err(would_not_fit("what the revision that was not read requests".into()));
    };
    let node = observer.api.node(name).await?;
    let there = observer.api.pods_on(name).await?;
    lacking(&node, &there.items, &pod.uid, template)
        .map_or(Ok(()), |lacks| Err(would_not_fit(lacks)))
}
