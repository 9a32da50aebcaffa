//! A cluster of ECK that has formed, with its SearchCluster.

use std::time::Instant;

use base64::Engine as _;
use serde_json::Value;
use tempfile::TempDir;

use super::elasticsearch::{DATA, load, three_nodes};
use super::operator;
use crate::pods::door::Door;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::until_ready;
use crate::pods::opensearch::Parts;
use crate::pods::operator_program::OperatorProgram;
use crate::pods::stateful_set::volumes_for;
use crate::pods::tls_client::TlsClient;
use crate::support::engine::Kind;
use crate::support::kubernetes::apiserver::part;
use crate::support::skip;
use crate::support::wait::eventually;

pub(super) const NODES: [&str; 3] = ["logs-es-default-0", "logs-es-default-1", "logs-es-default-2"];
/// Pods that a larger count and another node set add.
const ADDED: [&str; 3] = ["logs-es-default-3", "logs-es-more-0", "logs-es-more-1"];
/// What ECK calls the Service; the engines' certificates are for this name.
const SERVICE: &str = "logs-es-http";
/// What ECK has put in the config for the time in which the cluster forms.
const FIRST_MASTERS: &str = "initial_master_nodes";

/// Three nodes that are one cluster, ECK, and the reconciler.
pub(super) struct Stage {
    // In the order in which they are dropped.
    pub(super) operator: OperatorProgram,
    pub(super) fixture: Fixture,
    pub(super) engines: TlsClient,
    /// How many there are.
    pub(super) nodes: usize,
    _parts: Parts,
    _storage: TempDir,
}

impl Stage {
    /// A new cluster with the manager in it, and its SearchCluster. None if something is missing here; then the test
    /// is skipped.
    pub(super) fn set_up(test: &str) -> Option<Self> {
        Self::form(test, |fixture, elasticsearch| {
            let began = Instant::now();
            fixture.people.run(
                "kubectl apply -k deploy/
                 kubectl --namespace stayput rollout status deployment stayput-reconciler --timeout=5m",
            );
            fixture.people.write("elasticsearch.json", &elasticsearch.to_string());
            fixture
                .people
                .run("kubectl stayput inject elasticsearch.json > injected.json; kubectl apply --filename injected.json");
            for name in NODES {
                fixture.run(&["wait", "--for=create", "--timeout=2m", &format!("pod/{name}")]);
            }
            println!("ECK has made the pods: {} ms", began.elapsed().as_millis());
            fixture.people.run(
                "kubectl stayput --namespace search init logs
                 kubectl -n search annotate secret logs-es-elastic-user stayput.dev/allow=logs",
            );
        })
    }

    /// The same without anything of stayput.
    pub(super) fn without_stayput(test: &str) -> Option<Self> {
        Self::form(test, |fixture, elasticsearch| fixture.admin().apply(elasticsearch))
    }

    fn form(test: &str, make: impl FnOnce(&Fixture, &Value)) -> Option<Self> {
        let laid = Parts::of(Kind::Elasticsearch).and_then(|mut parts| {
            // ECK reads and deletes shutdown records, and asks for the cluster's UUID.
            parts.home = part("STAYPUT_ELASTICSEARCH_SHUTDOWN_HOME")?;
            part("STAYPUT_ECK")?;
            let fixture = Fixture::lay("privileged")?;
            let operator = operator::start(&fixture)?;
            Ok((parts, fixture, operator))
        });
        let (parts, fixture, operator) = laid.map_err(|why| skip(test, &why)).ok()?;
        load(&fixture, &parts);
        let storage = volumes_for(&fixture, DATA, &[NODES, ADDED].concat());
        let began = Instant::now();
        make(&fixture, &three_nodes(&parts));
        until_ready(&fixture, &NODES);
        println!("the pods are ready: {} ms", began.elapsed().as_millis());
        let engines = client(&fixture);
        let stage = Self {
            operator,
            fixture,
            engines,
            nodes: NODES.len(),
            _parts: parts,
            _storage: storage,
        };
        stage.until_formed();
        println!("ECK has seen that the cluster has formed: {} ms", began.elapsed().as_millis());
        Some(stage)
    }

    /// Waits until all copies of all shards are in their places, and ECK has taken the first masters out of the
    /// config.
    fn until_formed(&self) {
        self.until_green();
        eventually("ECK takes the first masters out of the config", || {
            let config = self.fixture.read("secrets/logs-es-default-es-config");
            let settings = decode(&config["data"]["elasticsearch.yml"]);
            (!settings.contains(FIRST_MASTERS)).then_some(())
        });
    }

    /// Waits until all nodes have all copies of all shards in their places.
    pub(super) fn until_green(&self) {
        let wait = format!("wait_for_nodes={}&wait_for_status=green&timeout=5s", self.nodes);
        eventually("all nodes, green", || {
            (self.ask(&format!("_cluster/health?{wait}"))?["timed_out"] == false).then_some(())
        });
    }

    /// Learns the addresses of pods that were made anew.
    pub(super) fn meet_new_pods(&mut self) {
        self.engines = client(&self.fixture);
    }

    /// Sends `GET target` to the engines.
    pub(super) fn ask(&self, target: &str) -> Option<Value> {
        self.engines.ask("GET", target, None)
    }

    /// How clients of the engines' Service reach them.
    pub(super) fn door(&self) -> Door {
        let (authority, password) = credentials(&self.fixture);
        Door::secured(SERVICE, &authority, &password)
    }

    /// What ECK says of the cluster.
    pub(super) fn elasticsearch(&self) -> Value {
        self.fixture.admin().json(&["get", "elasticsearch", "logs", "--namespace", "search"])
    }
}

/// A client of all nodes: a pod keeps its address.
fn client(fixture: &Fixture) -> TlsClient {
    let (authority, password) = credentials(fixture);
    let pods = fixture.pods();
    let addresses = pods.iter().map(|pod| pod["status"]["podIP"].as_str().expect("an address"));
    TlsClient::new(SERVICE, &authority, &password, addresses.map(str::to_owned))
}

/// The CA of the engines' certificates, and the password of the user `elastic`.
fn credentials(fixture: &Fixture) -> (String, String) {
    let user = fixture.read("secrets/logs-es-elastic-user");
    let authority = fixture.read("secrets/logs-es-http-certs-public");
    (decode(&authority["data"]["ca.crt"]), decode(&user["data"]["elastic"]))
}

/// A value of a Secret.
fn decode(value: &Value) -> String {
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().expect("text"));
    String::from_utf8(bytes.expect("base64")).expect("UTF-8")
}
