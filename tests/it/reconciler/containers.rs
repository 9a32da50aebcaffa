//! What the kubelet does with containers: one that has ended, or whose image is another, is made
//! anew in the same pod. A file shows an annotation of the pod.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use stayput_restart::annotation::ENVIRONMENT;
use tokio::task::JoinHandle;

use super::fixture::{Fixture, NODES};
use super::manager::Manager;

/// The task that watches over the containers of all pods.
pub(super) struct Containers(JoinHandle<()>);

impl Containers {
    /// Gives each pod the status of its container, and goes on until it is ended.
    pub(super) async fn run(fixture: &Fixture) -> Self {
        let (pods, managers) = (fixture.api::<Pod>(), Arc::clone(&fixture.managers));
        let mut known = BTreeMap::new();
        for name in NODES {
            look(&pods, name, &managers, &mut known).await;
        }
        Self(tokio::spawn(async move {
            loop {
                for name in NODES {
                    look(&pods, name, &managers, &mut known).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }

    pub(super) fn end(self) {
        self.0.abort();
    }
}

/// A container: the uid of its pod, its image, and how many there were before it.
type Known = (Option<String>, String, u32);

/// One look at one container.
async fn look(
    pods: &Api<Pod>,
    name: &'static str,
    managers: &Mutex<BTreeMap<String, Manager>>,
    known: &mut BTreeMap<&'static str, Known>,
) {
    let Ok(pod) = pods.get(name).await else { return };
    let uid = pod.metadata.uid.clone();
    if known.get(name).is_some_and(|(before, ..)| *before != uid) {
        // Whoever made the pod has started its manager.
        known.remove(name);
    }
    let annotations = pod.metadata.annotations.unwrap_or_default();
    let environment = annotations.get(ENVIRONMENT).cloned().unwrap_or_default();
    let image = pod.spec.and_then(|spec| spec.containers.first()?.image.clone());
    let image = image.unwrap_or_default();
    let (_, before, number) = known.get(name).cloned().unwrap_or((None, image.clone(), 0));
    let is_new = {
        let mut managers = managers.lock().expect("a lock");
        let manager = managers.get_mut(name).expect("a manager");
        manager.show(&environment);
        let is_over = manager.has_ended() || image != before;
        if is_over {
            manager.renew();
        }
        is_over
    };
    if known.contains_key(name) && !is_new {
        return;
    }
    let number = number + 1;
    let status = json!({"status": {"containerStatuses": [{
        "name": "search", "image": image, "imageID": "", "ready": true,
        "restartCount": number, "containerID": format!("test://{name}/{}/{number}", uid.as_deref().unwrap_or_default()),
        "state": {"running": {}},
    }]}});
    let status = Patch::Merge(status);
    pods.patch_status(name, &PatchParams::default(), &status).await.expect("it is taken");
    known.insert(name, (uid, image, number));
}
