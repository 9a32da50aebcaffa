//! A node, the pods on it, and a pod that comes back there.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, Pod, PodSpec};
use serde_json::{Value, json};

use kube::core::PartialObjectMeta;

use super::{Coming, nodes_of};

/// Alone by what the node has and asks for.
fn why_not(node: &Node, there: &[Pod], uid: &str, wanted: &PodSpec) -> Option<String> {
    let coming = Coming { uid: uid.to_owned(), spec: wanted.clone(), ..Coming::default() };
    super::why_not(node, there, &coming).expect("it is known")
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object of Kubernetes")
}

fn pod(uid: &str, phase: &str, memory: &str) -> Pod {
    read(json!({
        "metadata": {"name": uid, "uid": uid},
        "spec": {"containers": [{
            "name": "a", "resources": {"requests": {"memory": memory, "cpu": "500m"}},
        }]},
        "status": {"phase": phase},
    }))
}

/// With a sidecar that requests 1 GiB.
fn wanted(cpu: &str, memory: &str) -> PodSpec {
    read(json!({
        "containers": [{"name": "a", "resources": {"limits": {"cpu": cpu, "memory": memory}}}],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}},
        ],
    }))
}

fn node(spec: Value) -> Node {
    let labels = json!({"disk": "ssd", "kubernetes.io/hostname": "n", "cores": "8"});
    read(json!({
        "metadata": {"name": "n", "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "3"}},
    }))
}

#[test] // proves UPDATE-9
fn what_the_others_request_is_not_free_and_what_the_pod_itself_has_is() {
    let there = [
        pod("self", "Running", "8Gi"),
        pod("other", "Running", "4Gi"),
        pod("over", "Succeeded", "8Gi"),
    ];
    let why = |cpu, memory| why_not(&node(json!({})), &there, "self", &wanted(cpu, memory));
    assert_eq!(why("1", "11Gi"), None);
    assert_eq!(
        why("1", "12Gi").expect("it does not fit"),
        "it requests 13312 MiB memory of which 12288 MiB are left: make room there, or request less"
    );
    assert_eq!(
        why("4", "12Gi").expect("it does not fit"),
        "it requests 4000m cpu of which 3500m are left, 13312 MiB memory of which 12288 MiB are \
         left: make room there, or request less"
    );
}

#[test] // proves UPDATE-11
fn what_pods_of_a_lower_priority_request_is_free_where_they_would_be_evicted() {
    let of = |mut pod: Pod, class: Option<&str>, priority: Option<i32>, policy: &str| {
        let spec = pod.spec.as_mut().expect("a spec");
        spec.priority_class_name = class.map(str::to_owned);
        spec.priority = priority;
        spec.preemption_policy = Some(policy.to_owned());
        pod
    };
    // Class, priority and policy of the pod; priority of the other; class in the template.
    let rows = [
        (Some("search"), Some(1000), "PreemptLowerPriority", Some(0), Some("search"), true),
        (Some("search"), Some(1000), "PreemptLowerPriority", None, Some("search"), true),
        (Some("search"), Some(1000), "PreemptLowerPriority", Some(1000), Some("search"), false),
        (Some("search"), Some(1000), "PreemptLowerPriority", Some(2000), Some("search"), false),
        (Some("search"), Some(1000), "Never", Some(0), Some("search"), false),
        // The priority of another class is not known.
        (Some("search"), Some(1000), "PreemptLowerPriority", Some(0), Some("other"), false),
        (Some("search"), Some(1000), "PreemptLowerPriority", Some(0), None, false),
        (None, Some(0), "PreemptLowerPriority", Some(-1), None, true),
        (None, Some(0), "PreemptLowerPriority", Some(0), None, false),
        (None, None, "PreemptLowerPriority", Some(-1), None, false),
    ];
    for (class, priority, policy, other, asked, fits) in rows {
        let there = [
            of(pod("self", "Running", "8Gi"), class, priority, policy),
            of(pod("other", "Running", "4Gi"), None, other, "PreemptLowerPriority"),
        ];
        let mut wanted = wanted("1", "12Gi");
        wanted.priority_class_name = asked.map(str::to_owned);
        let why = why_not(&node(json!({})), &there, "self", &wanted);
        let row = format!("{class:?} {priority:?} {policy}, {other:?}, {asked:?}");
        assert_eq!(why.is_none(), fits, "{row}: {why:?}");
    }
}

#[test] // proves UPDATE-9
fn any_resource_counts_and_the_number_of_pods() {
    let there = ["a", "b", "c"].map(|uid| pod(uid, "Running", "1Gi"));
    let why = |spec| why_not(&node(json!({})), &there, "self", &read::<PodSpec>(spec));
    let full = why(json!({"containers": []})).expect("the node is full");
    assert!(full.contains("1 pods of which 0 are left"), "{full}");
    let limits = json!({"example.com/gpu": "2", "hugepages-2Mi": "4Mi"});
    let lacks = why(json!({"containers": [{"name": "a", "resources": {"limits": limits}}]}));
    let lacks = lacks.expect("the node has none");
    assert!(lacks.contains("2 example.com/gpu of which 0 are left"), "{lacks}");
    assert!(lacks.contains("4 MiB hugepages-2Mi of which 0 MiB are left"), "{lacks}");
}

#[test] // proves UPDATE-9
fn a_node_that_takes_no_such_pod_says_why() {
    let taint = json!({"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]});
    let affinity = |key: &str, operator: &str, values: Value| {
        let term =
            json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let required = json!({"nodeSelectorTerms": [{}, term]});
        let kind = "requiredDuringSchedulingIgnoredDuringExecution";
        json!({"affinity": {"nodeAffinity": {kind: required}}})
    };
    let rows: [(&str, Value, Value, Option<&str>); 15] = [
        ("nothing", json!({}), json!({}), None),
        ("a cordon", json!({"unschedulable": true}), json!({}), Some("`kubectl uncordon n`")),
        (
            "a cordon that is tolerated",
            json!({"unschedulable": true}),
            json!({"tolerations": [{"operator": "Exists"}]}),
            None,
        ),
        ("a taint", taint.clone(), json!({}), Some("the taint a=b:NoSchedule")),
        (
            "a taint of another value",
            taint.clone(),
            json!({"tolerations": [{"key": "a", "value": "c"}]}),
            Some("the taint a=b:NoSchedule"),
        ),
        (
            "a taint that is tolerated",
            taint,
            json!({"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}),
            None,
        ),
        (
            "a taint that only prefers",
            json!({"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}),
            json!({}),
            None,
        ),
        ("a selector", json!({}), json!({"nodeSelector": {"disk": "ssd"}}), None),
        (
            "a selector of others",
            json!({}),
            json!({"nodeSelector": {"disk": "hdd"}}),
            Some("its nodeSelector asks for disk=hdd"),
        ),
        ("affinity", json!({}), affinity("disk", "In", json!(["hdd", "ssd"])), None),
        (
            "affinity to others",
            json!({}),
            affinity("disk", "NotIn", json!(["ssd"])),
            Some("its node affinity asks for other nodes"),
        ),
        ("affinity to what is absent", json!({}), affinity("gpu", "DoesNotExist", json!([])), None),
        (
            "affinity to what must be there",
            json!({}),
            affinity("gpu", "Exists", json!([])),
            Some("its node affinity"),
        ),
        ("affinity to more", json!({}), affinity("cores", "Gt", json!(["4"])), None),
        (
            "affinity to less",
            json!({}),
            affinity("cores", "Lt", json!(["4"])),
            Some("its node affinity"),
        ),
    ];
    for (name, of_node, mut of_pod, expected) in rows {
        of_pod["containers"] = json!([]);
        let why = why_not(&node(of_node), &[], "self", &read(of_pod));
        match (&why, expected) {
            (None, None) => {}
            (Some(why), Some(expected)) => assert!(why.contains(expected), "{name}: {why}"),
            _ => panic!("{name}: {why:?}"),
        }
    }
}

#[test] // proves UPDATE-9
fn a_volume_is_on_one_node_if_its_affinity_selects_one_alone() {
    let volume = |key: &str| -> PersistentVolume {
        read(json!({
            "metadata": {"name": "v"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{
                "matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}],
            }]}}},
        }))
    };
    let is_on_one_node = |key, nodes: Option<&[_]>| {
        super::is_on_one_node(&nodes_of(volume(key)).expect("it asks for nodes"), nodes)
    };
    let by_name = |key| is_on_one_node(key, None);
    assert!(by_name("kubernetes.io/hostname"));
    assert!(by_name("topology.topolvm.io/node"));
    assert!(!by_name("topology.kubernetes.io/zone"));
    assert!(nodes_of(PersistentVolume::default()).is_none());

    let node = |name: &str, key: &str, value: &str| -> PartialObjectMeta<Node> {
        read(json!({"metadata": {"name": name, "labels": {key: value}}}))
    };
    for key in [
        "topology.csi.vmware.com/k8s-zone",
        "csi.hetzner.cloud/location",
        "topology.kubernetes.io/zone",
        "topology.topolvm.io/node",
    ] {
        let nodes = ["a", "a", "b"].map(|value| node("n", key, value));
        assert!(!is_on_one_node(key, Some(&nodes)), "{key}");
        let nodes = ["a", "b", "b"].map(|value| node("n", key, value));
        assert!(is_on_one_node(key, Some(&nodes)), "{key}");
    }
    // Its node is gone.
    let others = [node("n", "topology.topolvm.io/node", "b")];
    assert!(is_on_one_node("topology.topolvm.io/node", Some(&others)));
    assert!(!is_on_one_node("topology.kubernetes.io/zone", Some(&others)));
}
