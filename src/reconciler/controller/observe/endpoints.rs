//! Whether Services send requests to a pod: the EndpointSlices of its namespace. They are listed only
//! while a manager drains. Without the right to do so, the manager ends the drain by itself.

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::{Endpoint as Entry, EndpointConditions, EndpointSlice};
use kube::api::ObjectList;

use crate::controller::apiserver::{ApiError, Apiserver};
use stayput_restart::{Drain, Endpoint, Known, Pod, Policy, Unknown};

/// What was listed last, for the pods that drained then.
#[derive(Debug, Default)]
pub(in super::super) struct Endpoints {
    version: Option<String>,
}

impl Endpoints {
    /// Since which version a change of the EndpointSlices may end a drain; none if none is awaited.
    pub(in super::super) fn awaited_since(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Completes these pods.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        policy: &Policy,
        pods: &mut [Pod],
    ) {
        self.version = None;
        let drains = |pod: &Pod| pod.manager.as_ref().is_ok_and(|manager| manager.draining);
        if policy.drain != Drain::Auto || !pods.iter().any(drains) {
            return;
        }
        let listed = api.endpoint_slices(namespace).await;
        if let Err(error) = &listed {
            tracing::warn!("a drain takes its longest time: {error}");
        }
        let listed = listed.as_ref();
        for pod in pods.iter_mut().filter(|pod| drains(pod)) {
            pod.endpoint = endpoint(listed, &pod.uid);
            if pod.endpoint == Ok(Endpoint::Ready) {
                self.version = listed.ok().and_then(|list| list.metadata.resource_version.clone());
            }
        }
    }
}

fn endpoint(listed: Result<&ObjectList<EndpointSlice>, &ApiError>, uid: &str) -> Known<Endpoint> {
    let slices = listed.map_err(|error| Unknown { message: error.to_string() })?;
    let is_it = |entry: &&Entry| {
        let target = entry.target_ref.as_ref();
        target.is_some_and(|target| target.uid.as_deref() == Some(uid))
    };
    let found: BTreeSet<bool> =
        slices.iter().flat_map(|slice| &slice.endpoints).filter(is_it).map(is_sent_to).collect();
    Ok(match found.last() {
        None => Endpoint::Absent,
        Some(false) => Endpoint::NotReady,
        Some(true) => Endpoint::Ready,
    })
}

/// `serving` is the readiness of the pod. A Service with `publishNotReadyAddresses` calls all its
/// pods ready: no wait would take this one out of it.
fn is_sent_to(entry: &Entry) -> bool {
    let conditions = entry.conditions.as_ref();
    let is = |condition: fn(&_) -> Option<bool>| conditions.and_then(condition).unwrap_or(true);
    is(|conditions: &EndpointConditions| conditions.ready) && is(|conditions| conditions.serving)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn listed(slices: &[&[(&str, Value)]]) -> ObjectList<EndpointSlice> {
        let entry = |(uid, conditions): &(&str, Value)| {
            let target = json!({"kind": "Pod", "uid": uid});
            json!({"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": target})
        };
        let slice = |entries: &&[(&str, Value)]| {
            let entries: Vec<Value> = entries.iter().map(entry).collect();
            json!({"addressType": "IPv4", "metadata": {}, "endpoints": entries})
        };
        let items: Vec<Value> = slices.iter().map(slice).collect();
        serde_json::from_value(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "metadata": {},
            "items": items,
        }))
        .expect("a list")
    }

    #[test]
    fn a_pod_is_sent_requests_if_any_slice_has_it_as_ready() {
        let (ready, not) = (json!({"ready": true}), json!({"ready": false, "serving": false}));
        // The headless Service of most clusters.
        let published = json!({"ready": true, "serving": false});
        let slices = listed(&[
            &[("a", ready.clone()), ("b", not.clone()), ("d", json!({}))],
            &[("a", not.clone()), ("b", published)],
            &[],
        ]);
        let of = |uid| endpoint(Ok(&slices), uid);
        assert_eq!(of("a"), Ok(Endpoint::Ready));
        assert_eq!(of("b"), Ok(Endpoint::NotReady));
        assert_eq!(of("c"), Ok(Endpoint::Absent));
        assert_eq!(of("d"), Ok(Endpoint::Ready), "a condition that is absent counts as true");
    }
}
