//! The headless Service: nodes find each other by it before they are ready.

use serde_json::json;

use crate::labels::{labels, metadata};
use crate::{Cluster, Kind, Object, names};

pub(crate) fn service(cluster: &Cluster) -> Object {
    let name = names::service(&cluster.name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, &name, None),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(cluster, None),
            "ports": [
                { "name": "http", "port": cluster.engine.port },
                { "name": "transport", "port": 9300 },
            ],
        },
    });
    Object { kind: Kind::Service, name, body }
}
