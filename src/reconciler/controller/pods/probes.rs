//! What a pod's probes ask: one that asks the engine kills the container while the engine is
//! stopped. Readiness probes kill nobody.

use k8s_openapi::api::core::v1::{Container, PodSpec, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What one probe aims at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aim {
    pub(super) container: String,
    /// `liveness` or `startup`.
    pub(super) probe: &'static str,
    at: At,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Port(u16),
    /// The numbers in a command line.
    Numbers(Vec<u16>),
}

impl Aim {
    /// Whether it asks who listens at `port`.
    pub(super) fn hits(&self, port: u16) -> bool {
        match &self.at {
            At::Port(at) => *at == port,
            At::Numbers(numbers) => numbers.contains(&port),
        }
    }
}

/// What the probes of a pod that can kill a container aim at.
pub(super) fn aims(spec: &PodSpec) -> Vec<Aim> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut aims = Vec::new();
    for container in containers {
        let probes =
            [("liveness", &container.liveness_probe), ("startup", &container.startup_probe)];
        for (name, probe) in probes {
            if let Some(at) = probe.as_ref().and_then(|probe| at(container, probe)) {
                aims.push(Aim { container: container.name.clone(), probe: name, at });
            }
        }
    }
    aims
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
        aims(&spec).iter().any(|aim| aim.hits(9200))
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
