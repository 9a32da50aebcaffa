//! Variables of a member's engine. Its manager reads them before each start of a process, from a file that shows an
//! annotation of the pod: so the engine gets them in the same container.

use std::collections::BTreeMap;

use crate::annotation::ENVIRONMENT;
use crate::flow::turn::{Turn, wait};
use crate::snapshot::variables::digest;
use crate::{Action, Change, Code, Manager, MemberUpdate, Pod};

/// The patch that makes the annotation of a pod the wanted one of this change, if it is another one.
fn patch(pod: &Pod, change: &Change) -> Option<Action> {
    let (seen, wanted) = (pod.annotations.get(ENVIRONMENT).cloned(), change.wanted.clone());
    (seen != wanted).then(|| {
        let annotations = BTreeMap::from([(ENVIRONMENT.to_owned(), Change { seen, wanted })]);
        Action::PatchMetadata { uid: pod.uid.clone(), labels: BTreeMap::new(), annotations }
    })
}

/// Passes once the pod has the annotation with the variables of the update. The engine is stopped.
pub(crate) fn until_annotated(fixed: &MemberUpdate, pod: &Pod) -> Result<(), Turn> {
    let change = fixed.update.patch.variables.as_ref();
    match change.and_then(|change| patch(pod, change)) {
        Some(action) => {
            let message = "its variables are being changed";
            Err(Turn::act_and_wait(action, Code::ConfigNotMounted, message))
        }
        None => Ok(()),
    }
}

/// Passes once the manager sees the variables of the update.
pub(crate) fn until_mounted(
    fixed: Option<&MemberUpdate>,
    pod: &Pod,
    manager: &Manager,
) -> Result<(), Turn> {
    let change = fixed.and_then(|fixed| fixed.update.patch.variables.as_ref());
    match change {
        Some(change) if manager.variables != Some(digest(change.wanted.as_ref())) => {
            let message = format!("its new variables are not mounted in {} yet", pod.name);
            Err(wait(Code::ConfigNotMounted, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// True if the engine was started with the variables of the update, as far as its manager says.
pub(crate) fn is_started_with(fixed: &MemberUpdate, pod: &Pod) -> bool {
    let Some(change) = &fixed.update.patch.variables else { return true };
    match &pod.manager {
        Ok(manager) => {
            let run = manager.run.as_ref().and_then(|run| run.variables.as_ref());
            run == Some(&digest(change.wanted.as_ref()))
        }
        Err(_) => pod.annotations.get(ENVIRONMENT) == change.wanted.as_ref(),
    }
}

/// The patch that rolls the annotation back, if it is that of the update. `undo`: its change, reversed.
pub(crate) fn rollback(undo: Option<&Change>, pod: &Pod) -> Option<Action> {
    let undo = undo.filter(|undo| pod.annotations.get(ENVIRONMENT) == undo.seen.as_ref())?;
    patch(pod, undo)
}

/// True if the manager still sees other variables than those in the annotation. One that shows none is not waited for.
pub(crate) fn is_behind(pod: &Pod, manager: &Manager) -> bool {
    let now = digest(pod.annotations.get(ENVIRONMENT));
    manager.variables.as_ref().is_some_and(|seen| *seen != now)
}
