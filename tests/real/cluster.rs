//! The cluster of the tests works as other tests expect: a node's config is swapped and its manager
//! restarts it, addressed as by the reconciler, while the other nodes serve.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use stayput_api::checksum::Checksum;
use stayput_api::{StartRequest, StopRequest};
use stayput_net::https::{ONLY_1_3, Pem, Tls};
use stayput_net::jwt::{Grant, Scopes, mint, pod_audience};
use stayput_net::manager_client::{Address, Credentials, ManagerClient, Token};

use crate::support::cluster::{Cluster, Flavor, Member, PodIdentity, SERVER_NAME, Seat};
use crate::support::skip::skip;
use crate::support::wait::eventually;

const NAMESPACE: &str = "search";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn client(cluster: &Cluster, member: &Member) -> ManagerClient {
    let grant = Grant {
        subject: "stayput-reconciler".into(),
        scopes: Scopes::CONTROL,
        audience: pod_audience(NAMESPACE, &member.pod.uid),
        ttl: Duration::from_secs(600),
    };
    let token = mint(&cluster.jwt_key, &grant, SystemTime::now()).expect("a token");
    let ca = Pem::new("the CA of the test", cluster.ca_pem.as_str());
    let tls = Tls::new(&ca, None, ONLY_1_3).expect("a CA");
    let address = Address::Url {
        url: format!("https://{}:{}", member.address, cluster.ports.manager),
        server_name: Some(SERVER_NAME.into()),
        credentials: Credentials { tls: Some(tls), token: Some(Token::Text(token)) },
    };
    ManagerClient::new(address).expect("a client").for_pod(&member.pod.uid)
}

fn attribute(member: &Member) -> Value {
    let local = member.rest.send("GET", "/_nodes/_local", None).expect("an answer").expect(200);
    let node = local["nodes"].as_object().and_then(|nodes| nodes.values().next());
    node.expect("a node")["attributes"]["stayput"].clone()
}

#[test]
fn a_node_is_given_another_config_and_comes_back_with_it() {
    let name = "cluster::a_node_is_given_another_config_and_comes_back_with_it";
    let pods = Seat::all_rounders(PodIdentity::three());
    let mut cluster = match Cluster::prepare(Flavor::Elasticsearch, NAMESPACE, pods, None) {
        Ok(cluster) => cluster,
        Err(why) => return skip(name, &why),
    };
    cluster.start();
    let settings = json!({ "settings": { "number_of_shards": 1, "number_of_replicas": 2 } });
    let rest = cluster.members[1].rest;
    let created = rest.send("PUT", "/docs?wait_for_active_shards=all", Some(&settings));
    created.expect("an answer").expect(200);
    assert!((0..5).all(|id| rest.index("docs", id)));
    rest.send("POST", "/docs/_refresh", None).expect("an answer").expect(200);
    let pids: Vec<_> = cluster.members.iter().map(Member::manager_pid).collect();
    assert!(pids.iter().all(Option::is_some));

    let member = cluster.member("logs-0");
    let manager = client(&cluster, member);
    let old = wait(manager.status()).expect("a status").status;
    let run = old.run.expect("a run");
    let stop = StopRequest { sequence: Some(1), ..StopRequest::default() };
    assert!(wait(manager.stop(&stop, Some(REQUEST_TIMEOUT))).expect("an answer").done);
    assert!(member.rest.send("GET", "/", None).is_err());
    // Until the other nodes have noticed.
    let found = eventually("the others search again", || rest.search("docs"));
    assert_eq!(found, 5);
    assert!(rest.index("docs", 5));

    let files = member.files("node.attr.stayput: second");
    let member = cluster.member_mut("logs-0");
    member.swap(&files);
    let mounted = fs::read_to_string(member.mount().join("elasticsearch.yml")).expect("a file");
    assert_eq!(Some(&mounted), files.get("elasticsearch.yml"));
    // Only from the data, as it is in the Secret.
    let checksum = Checksum::of_contents(files).as_str().to_owned();
    assert_ne!(run.checksum.as_ref(), Some(&checksum));
    let start = StartRequest {
        sequence: Some(2),
        checksum: Some(checksum.clone()),
        ..StartRequest::default()
    };
    let started = wait(manager.start(&start, Some(REQUEST_TIMEOUT))).expect("an answer").status;
    assert_eq!(started.run.and_then(|run| run.checksum), Some(checksum));
    cluster.until_formed();
    let member = cluster.member("logs-0");
    assert_eq!(attribute(member), "second");
    assert_eq!(attribute(cluster.member("logs-1")), "first");
    assert!((0..6).all(|id| member.rest.has("docs", id)));
    assert!(!member.rest.has("docs", 6));
    let now: Vec<_> = cluster.members.iter().map(Member::manager_pid).collect();
    assert_eq!(now, pids);

    // The end of a container, and the next one in the same pod.
    let member = cluster.member_mut("logs-2");
    member.kill_manager();
    assert_eq!(member.manager_pid(), None);
    assert!(member.state_dir().read_dir().expect("a directory").next().is_some());
    cluster.start();
    assert_eq!(cluster.member("logs-2").rest.search("docs"), Some(6));
}
