//! Three stand-in engines that form a cluster.

use std::net::TcpStream;
use std::time::Duration;

use nix::sys::signal::Signal::SIGTERM;
use serde_json::Value;

use super::ports::loopback_addresses;
use super::standin::{Engine, StandIn};
use stayput_conformance::engine::Cluster;
use stayput_standin::harness::http::exchange;

/// Three nodes, `n0` to `n2`, each with an address of its own.
pub(crate) struct Three {
    hosts: [String; 3],
    nodes: [StandIn; 3],
    engines: [Option<Engine>; 3],
    settings: String,
}

impl Three {
    /// Nodes that are not started, with additional settings.
    pub(crate) fn new(settings: &str) -> Self {
        let [first, second, third, _] = loopback_addresses();
        let hosts = [first, second, third];
        let nodes = [(); 3].map(|()| StandIn::new(""));
        let three =
            Self { hosts, nodes, engines: [const { None }; 3], settings: settings.to_owned() };
        for node in 0..3 {
            three.configure(node, "");
        }
        three
    }

    /// Running nodes that form a cluster.
    pub(crate) fn started(settings: &str) -> Self {
        let mut three = Self::new(settings);
        (0..3).for_each(|node| three.start(node));
        three.ask(0, "GET", "/_cluster/health?wait_for_nodes=3", None).expect("n0 answers");
        three
    }

    /// Gives a node additional settings, for its next start.
    pub(crate) fn configure(&self, node: usize, settings: &str) {
        let seeds: Vec<String> = self.hosts.iter().map(|host| format!("{host}:9300")).collect();
        self.nodes[node].configure(&format!(
            "cluster.name: three\nnode.name: n{node}\nnetwork.host: {}\nhttp.port: 9200\n\
             discovery.seed_hosts: {seeds:?}\ncluster.initial_master_nodes: n0,n1,n2\n\
             {}\n{settings}",
            self.hosts[node], self.settings
        ));
    }

    /// The addresses of the nodes, with port 9200.
    pub(crate) fn hosts(&self) -> [String; 3] {
        self.hosts.clone()
    }

    /// The engine of a running node.
    pub(crate) fn engine(&mut self, node: usize) -> &mut Engine {
        self.engines[node].as_mut().expect("it runs")
    }
}

impl Cluster for Three {
    fn is_elasticsearch(&self) -> bool {
        self.settings.contains("standin.distribution: elasticsearch")
    }

    fn name(&self, node: usize) -> String {
        format!("n{node}")
    }

    fn ask(
        &self,
        node: usize,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        ask_at(&self.hosts[node], method, target, body)
    }

    fn stop(&mut self, node: usize) {
        let mut engine = self.engines[node].take().expect("it runs");
        engine.signal(SIGTERM);
        assert_eq!(engine.wait(), 143);
    }

    fn start(&mut self, node: usize) {
        let mut engine = self.nodes[node].start();
        engine.expect_line("started");
        self.engines[node] = Some(engine);
    }
}

/// Sends a request to the node at this address: status and body, null if the body is no JSON.
pub(crate) fn ask_at(
    host: &str,
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> Option<(u16, Value)> {
    let stream = TcpStream::connect((host, 9200)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a setting");
    let answer = exchange(stream, (method, target), body).ok()?;
    Some((answer.status, answer.body))
}
