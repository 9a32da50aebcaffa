//! Whether a pod that is made anew fits on the Kubernetes node that its volume is on. Pure.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, Pod};
use serde_json::Value;
use stayput_reuse::thousandths;

/// What a pod requests, or a node has: in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amounts {
    cpu: i128,
    memory: i128,
}

impl Amounts {
    fn of(amounts: &Value) -> Self {
        let amount = |name: &str| thousandths(amounts[name].as_str()?);
        Self {
            cpu: amount("cpu").unwrap_or_default(),
            memory: amount("memory").unwrap_or_default(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }

    fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }
}

/// What of a pod that is made from `template` does not fit on the node beside the pods there, for
/// people; none if it fits. `uid` is the pod in whose place it comes.
pub(super) fn lacking(node: &Node, there: &[Pod], uid: &str, template: &Value) -> Option<String> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let allocatable = Amounts::of(&serde_json::to_value(allocatable).unwrap_or_default());
    let used = there
        .iter()
        .filter(|pod| pod.metadata.uid.as_deref() != Some(uid) && !is_over(pod))
        .map(|pod| requests(&serde_json::to_value(&pod.spec).unwrap_or_default()))
        .fold(Amounts::default(), Amounts::plus);
    let wanted = requests(&template["spec"]);
    let cpu = (wanted.cpu, allocatable.cpu - used.cpu);
    let memory = (wanted.memory, allocatable.memory - used.memory);
    let mib = |amount: i128| amount.div_euclid(1000 * 1024 * 1024);
    let lacks = [
        (cpu.0 > cpu.1 && cpu.0 > 0).then(|| format!("{}m CPU, and {}m are left", cpu.0, cpu.1)),
        (memory.0 > memory.1 && memory.0 > 0).then(|| {
            format!("{} MiB of memory, and {} MiB are left", mib(memory.0), mib(memory.1))
        }),
    ];
    let lacks: Vec<String> = lacks.into_iter().flatten().collect();
    (!lacks.is_empty()).then(|| lacks.join("; "))
}

/// Whether the volume is on one node: where its affinity asks for anything but a zone or a region.
pub(super) fn is_on_one_node(volume: &PersistentVolume) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let terms = affinity.and_then(|affinity| affinity.required.as_ref());
    let keys =
        terms.into_iter().flat_map(|required| &required.node_selector_terms).flat_map(|term| {
            let expressions = term.match_expressions.iter().chain(&term.match_fields).flatten();
            expressions.map(|expression| expression.key.as_str())
        });
    let is_area = |key: &str| matches!(key.rsplit('/').next(), Some("zone" | "region"));
    keys.into_iter().any(|key| !is_area(key))
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// What a pod requests, as the scheduler counts it.
fn requests(spec: &Value) -> Amounts {
    let list = |name: &str| spec[name].as_array().cloned().unwrap_or_default();
    let (mut sidecars, mut at_start) = (Amounts::default(), Amounts::default());
    for container in list("initContainers") {
        let own = of_container(&container);
        at_start = at_start.max(sidecars.plus(own));
        if container["restartPolicy"] == "Always" {
            sidecars = sidecars.plus(own);
        }
    }
    let main = list("containers");
    let main = main.iter().map(of_container).fold(sidecars, Amounts::plus);
    main.max(at_start)
        .max(Amounts::of(&spec["resources"]["requests"]))
        .plus(Amounts::of(&spec["overhead"]))
}

/// A request that is not given is the limit.
fn of_container(container: &Value) -> Amounts {
    let resources = &container["resources"];
    let (requests, limits) = (&resources["requests"], &resources["limits"]);
    let (given, most) = (Amounts::of(requests), Amounts::of(limits));
    Amounts {
        cpu: if requests.get("cpu").is_some() { given.cpu } else { most.cpu },
        memory: if requests.get("memory").is_some() { given.memory } else { most.memory },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, phase: &str, memory: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid},
            "spec": {"containers": [{
                "name": "a", "resources": {"requests": {"memory": memory, "cpu": "500m"}},
            }]},
            "status": {"phase": phase},
        }))
        .expect("a pod")
    }

    fn template(cpu: &str, memory: &str) -> Value {
        json!({"spec": {
            "containers": [{"name": "a", "resources": {"limits": {"cpu": cpu, "memory": memory}}}],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always",
                 "resources": {"requests": {"memory": "1Gi"}}},
            ],
        }})
    }

    #[test]
    fn what_the_others_request_is_not_free_and_what_the_pod_itself_has_is() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "4", "memory": "16Gi"}},
        }))
        .expect("a node");
        let there = [
            pod("self", "Running", "8Gi"),
            pod("other", "Running", "4Gi"),
            pod("over", "Succeeded", "8Gi"),
        ];
        let lacks = |cpu, memory| lacking(&node, &there, "self", &template(cpu, memory));
        assert_eq!(lacks("1", "11Gi"), None);
        assert_eq!(
            lacks("1", "12Gi").expect("it does not fit"),
            "13312 MiB of memory, and 12288 MiB are left"
        );
        assert_eq!(lacks("4", "1Gi").expect("it does not fit"), "4000m CPU, and 3500m are left");
    }

    #[test]
    fn a_volume_is_on_one_node_unless_it_asks_only_for_a_zone() {
        let volume = |key: &str| -> PersistentVolume {
            serde_json::from_value(json!({
                "metadata": {"name": "v"},
                "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{
                    "matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}],
                }]}}},
            }))
            .expect("a volume")
        };
        assert!(is_on_one_node(&volume("kubernetes.io/hostname")));
        assert!(is_on_one_node(&volume("topology.topolvm.io/node")));
        assert!(!is_on_one_node(&volume("topology.kubernetes.io/zone")));
        assert!(!is_on_one_node(&PersistentVolume::default()));
    }
}
