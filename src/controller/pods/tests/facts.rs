use crate::pods::*;
use serde_json::json;

#[test]
fn only_a_stateful_set_of_kubernetes_itself_is_the_owner() {
    let owner = |group: &str, kind: &str, controller: bool| {
        let pod = json!({"metadata": {
            "name": "logs-0", "namespace": "n", "uid": "u", "resourceVersion": "1",
            "ownerReferences": [{
                "apiVersion": group, "kind": kind, "name": "logs", "uid": "s",
                "controller": controller,
            }],
        }});
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        PodFacts::of(&pod, &Reading::default()).expect("its facts").owner.is_some()
    };
    assert!(owner("apps/v1", "StatefulSet", true));
    assert!(!owner("apps/v1", "StatefulSet", false));
    assert!(!owner("apps/v1", "ReplicaSet", true));
    assert!(!owner("apps.kruise.io/v1beta1", "StatefulSet", true));
}
