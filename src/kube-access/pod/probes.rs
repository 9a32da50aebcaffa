//! The targets of a pod's liveness and startup probes: a probe that asks the engine has the container killed
//! while the engine is stopped, unless it has to fail for a day. A readiness probe kills no container.

use k8s_openapi::api::core::v1::{Container, PodSpec, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Time that a probe has to fail so that it is harmless, in seconds: no restart keeps an engine stopped for
/// as long. Where an operator lets only the times of a probe be chosen, `inject` writes one that has to fail
/// for months.
const PATIENT: i64 = 24 * 60 * 60;

/// The target of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    container: String,
    /// `liveness` or `startup`.
    probe: &'static str,
    at: At,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Port(u16),
    /// The numbers in a command line.
    Numbers(Vec<u16>),
}

impl ProbeTarget {
    /// True if the probe may send a request to `port`.
    fn hits(&self, port: u16) -> bool {
        match &self.at {
            At::Port(at) => *at == port,
            At::Numbers(numbers) => numbers.contains(&port),
        }
    }
}

/// The targets of those probes of a pod that can have a container killed.
pub fn probe_targets(spec: &PodSpec) -> Vec<ProbeTarget> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut targets = Vec::new();
    for container in containers {
        let probes =
            [("liveness", &container.liveness_probe), ("startup", &container.startup_probe)];
        for (name, probe) in probes {
            let probe = probe.as_ref().filter(|probe| !is_patient(probe));
            if let Some(at) = probe.and_then(|probe| at(container, probe)) {
                targets.push(ProbeTarget { container: container.name.clone(), probe: name, at });
            }
        }
    }
    targets
}

/// True for a probe that has to fail for a day before the kubelet kills. The defaults are those of the apiserver.
fn is_patient(probe: &Probe) -> bool {
    let period = i64::from(probe.period_seconds.unwrap_or(10));
    let failures = i64::from(probe.failure_threshold.unwrap_or(3));
    period * failures >= PATIENT
}

fn at(container: &Container, probe: &Probe) -> Option<At> {
    if let Some(exec) = &probe.exec {
        let words = exec.command.iter().flatten();
        // A port stands in a URL, after a space or in a script of one word.
        let numbers = words
            .flat_map(|word| word.split(|c: char| !c.is_ascii_digit()))
            .filter_map(|digits| digits.parse().ok());
        return Some(At::Numbers(numbers.collect()));
    }
    let by_http = probe.http_get.as_ref().map(|http| &http.port);
    let by_tcp = probe.tcp_socket.as_ref().map(|tcp| &tcp.port);
    match by_http.or(by_tcp)? {
        IntOrString::Int(port) => u16::try_from(*port).ok().map(At::Port),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let port = ports.find(|port| port.name.as_ref() == Some(name))?;
            u16::try_from(port.container_port).ok().map(At::Port)
        }
    }
}

/// Message about a probe of the pod that would have a container killed while the engine at `port` is stopped.
pub fn deadly_probe(targets: &[ProbeTarget], pod: &str, port: u16) -> Option<String> {
    let probe = targets.iter().find(|probe| probe.hits(port))?;
    Some(format!(
        "the {} probe of container {} of {pod} asks the engine (port {port}): while the engine is \
         stopped, the kubelet would kill the container; let the probe ask the manager's /livez",
        probe.probe, probe.container
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn hits(probe: &Value) -> bool {
        let spec = json!({"containers": [
            {"name": "search", "livenessProbe": probe,
             "ports": [{"name": "http", "containerPort": 9200}]},
        ]});
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        probe_targets(&spec).iter().any(|target| target.hits(9200))
    }

    #[test]
    fn probes_of_the_engine_are_told_from_those_of_the_manager() {
        for probe in [
            json!({"httpGet": {"port": 9200}}),
            json!({"httpGet": {"port": "http", "path": "/_cluster/health"}}),
            json!({"tcpSocket": {"port": 9200}}),
            json!({"exec": {"command": ["sh", "-c", "curl -fs localhost:9200/_cluster/health"]}}),
            json!({"exec": {"command": ["nc", "-z", "localhost", "9200"]}}),
        ] {
            assert!(hits(&probe), "{probe}");
        }
        for probe in [
            json!({"httpGet": {"port": 9199, "path": "/livez"}}),
            json!({"httpGet": {"port": "manager"}}),
            json!({"tcpSocket": {"port": 9300}}),
            json!({"exec": {"command": ["stayput", "status"]}}),
            json!({"exec": {"command": ["curl", "localhost:92001"]}}),
        ] {
            assert!(!hits(&probe), "{probe}");
        }
    }

    #[test] // proves MANIFEST-17
    fn a_probe_that_has_to_fail_for_a_day_kills_nobody() {
        let with = |times: Value| {
            let mut probe = json!({"tcpSocket": {"port": 9200}});
            probe.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
            hits(&probe)
        };
        assert!(with(json!({})));
        assert!(with(json!({"periodSeconds": 60, "failureThreshold": 1439})));
        assert!(!with(json!({"periodSeconds": 60, "failureThreshold": 1440})));
        assert!(with(json!({"failureThreshold": 8639})));
        assert!(!with(json!({"failureThreshold": 8640})));
        assert!(!with(json!({"periodSeconds": i32::MAX, "failureThreshold": i32::MAX})));
    }

    /// The operator connects to the engine, and lets only the times be chosen: pkg/builders/cluster.go in
    /// github.com/opensearch-project/opensearch-k8s-operator.
    #[test] // proves MANIFEST-17
    fn what_inject_writes_for_the_opensearch_operator_kills_nobody() {
        for group in ["opensearch.org", "opensearch.opster.io"] {
            let cluster = json!({
                "apiVersion": format!("{group}/v1"), "kind": "OpenSearchCluster",
                "metadata": {"name": "logs"},
                "spec": {
                    "general": {"serviceName": "logs", "version": "3.0.0"},
                    "nodePools": [{"component": "nodes", "replicas": 3, "probes": {
                        "liveness": {"periodSeconds": 1},
                    }}],
                },
            });
            let options = stayput_inject::Options::default();
            let injected = stayput_inject::inject(&cluster.to_string(), &options).unwrap().text;
            let injected: Value = serde_json::from_str(&injected).unwrap();
            let probes = &injected["spec"]["nodePools"][0]["probes"];
            for (name, times) in probes.as_object().unwrap() {
                let mut probe = json!({"tcpSocket": {"port": 9200}, "periodSeconds": 20});
                probe.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
                assert!(name == "readiness" || !hits(&probe), "{group}: {name} {probe}");
            }
            assert_eq!(probes["liveness"]["periodSeconds"], 1);
            assert!(probes["startup"].is_object());
        }
    }
}
