//! Rights that the reconciler needs, as in `deploy/`.

use futures_util::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::{Client, ResourceExt};
use stayput_kube_access::cluster::{SearchCluster, UpdateMode};
use stayput_restart::Known;

use crate::apiserver::server;
use crate::doctor::facts::Right;
use crate::doctor::read::known;
use crate::leader::{NAME, NAMESPACE};

const ALWAYS: [Right; 10] = [
    right("patch", "stayput.dev", "searchclusters", ""),
    right("update", "stayput.dev", "searchclusters", "status"),
    right("list", "", "pods", ""),
    right("watch", "", "pods", ""),
    right("patch", "", "pods", ""),
    right("get", "", "secrets", ""),
    right("get", "", "configmaps", ""),
    right("get", "apps", "statefulsets", ""),
    right("watch", "apps", "statefulsets", ""),
    right("create", "events.k8s.io", "events", ""),
];
/// Additional rights with `spec.update`.
const UPDATES: [Right; 2] =
    [right("get", "apps", "controllerrevisions", ""), right("patch", "", "pods", "resize")];
/// Additional rights with `spec.nodeSets`.
const DECLARED: [Right; 5] = [
    right("patch", "apps", "statefulsets", ""),
    right("patch", "", "secrets", ""),
    right("patch", "", "configmaps", ""),
    right("patch", "", "services", ""),
    right("list", "", "persistentvolumeclaims", ""),
];

const fn right(
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
) -> Right {
    Right { verb, group, resource, subresource }
}

/// Each right, and the answer if the reconciler has it.
pub(crate) async fn read(client: &Client, cluster: &SearchCluster) -> Vec<(Right, Known<bool>)> {
    let mut needed = ALWAYS.to_vec();
    if cluster.spec.update.mode == UpdateMode::InPlace {
        needed.extend(UPDATES);
    }
    if !cluster.spec.node_sets.is_empty() {
        needed.extend(DECLARED);
    }
    let namespace = cluster.namespace().unwrap_or_default();
    let ask = async |right: Right| {
        (right, known(server::review(client, review(&namespace, right)).await))
    };
    join_all(needed.into_iter().map(ask)).await
}

fn review(namespace: &str, right: Right) -> SubjectAccessReview {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{NAMESPACE}:{NAME}")),
            groups: Some(vec![
                "system:serviceaccounts".into(),
                format!("system:serviceaccounts:{NAMESPACE}"),
                "system:authenticated".into(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                namespace: text(namespace),
                verb: text(right.verb),
                group: text(right.group),
                resource: text(right.resource),
                subresource: text(right.subresource),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}
