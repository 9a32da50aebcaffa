//! A person's template over ours.

use serde_json::json;

use crate::pod::merge;

#[test]
fn named_elements_are_merged_others_replaced_and_null_takes_away() {
    let base = json!({"spec": {
        "containers": [{
            "name": "opensearch",
            "command": ["a", "b"],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}, {"name": "B"}],
            "volumeMounts": [
                {"name": "v", "mountPath": "/v", "readOnly": true},
                {"name": "data", "mountPath": "/usr/data"},
            ],
            "readinessProbe": {"periodSeconds": 1},
        }],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "affinity": {"podAntiAffinity": {}},
    }});
    let over = json!({"spec": {
        "containers": [
            {
                "name": "opensearch",
                "command": ["c"],
                "env": [{"name": "A", "value": "1"}, {"name": "C", "value": "2"}],
                "volumeMounts": [
                    {"$patch": "delete", "mountPath": "/usr/data"},
                    {"name": "w", "mountPath": "/v"},
                ],
                "readinessProbe": null,
            },
            {"name": "sidecar"},
        ],
        "volumes": [{"name": "data", "hostPath": {"path": "/d"}}],
        "affinity": null,
        "tolerations": [{"operator": "Exists"}],
    }});
    assert_eq!(
        merge(base.clone(), &over),
        json!({"spec": {
            "containers": [
                {
                    "name": "opensearch",
                    "command": ["c"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C", "value": "2"}],
                    "volumeMounts": [{"name": "w", "mountPath": "/v", "readOnly": true}],
                },
                {"name": "sidecar"},
            ],
            "volumes": [{"name": "data", "hostPath": {"path": "/d"}}],
            "tolerations": [{"operator": "Exists"}],
        }})
    );
    assert_eq!(merge(base.clone(), &json!(null)), base, "nothing is declared");
    assert_eq!(merge(base.clone(), &json!({})), base);
}
