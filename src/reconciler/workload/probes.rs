//! The targets of a pod's liveness and startup probes: one that asks the engine has the container
//! killed while the engine is stopped. A readiness probe kills no container.

use k8s_openapi::api::core::v1::{Container, PodSpec, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The target of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeTarget {
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
    /// Whether it may send a request to `port`.
    fn hits(&self, port: u16) -> bool {
        match &self.at {
            At::Port(at) => *at == port,
            At::Numbers(numbers) => numbers.contains(&port),
        }
    }
}

/// The targets of those probes of a pod that can have a container killed.
pub(crate) fn probe_targets(spec: &PodSpec) -> Vec<ProbeTarget> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut targets = Vec::new();
    for container in containers {
        let probes =
            [("liveness", &container.liveness_probe), ("startup", &container.startup_probe)];
        for (name, probe) in probes {
            if let Some(at) = probe.as_ref().and_then(|probe| at(container, probe)) {
                targets.push(ProbeTarget { container: container.name.clone(), probe: name, at });
            }
        }
    }
    targets
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

/// Which of a pod's probes would have a container killed while the engine at `port` is stopped; none if
/// none would.
pub(crate) fn deadly_probe(targets: &[ProbeTarget], pod: &str, port: u16) -> Option<String> {
    let probe = targets.iter().find(|probe| probe.hits(port))?;
    Some(format!(
        "the {} probe of container {} of {pod} asks the engine (port {port}): while the engine is \
         stopped, the kubelet would kill the container; let the probe ask the manager's /livez",
        probe.probe, probe.container
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
}
