//! The cluster of `docs/declared.md` that has TLS and a password from its first start.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use stayput_standin::harness::pki::issue;

use super::spec::declared;
use super::{STAYPUT, until_replicas};
use crate::pods::fixture::{ENGINE, Fixture};
use crate::pods::nodes::observe_all;
use crate::pods::opensearch::Parts;
use crate::pods::tls_client::TlsClient;
use crate::support::wait::eventually;

/// Where the official image has its config, and where it is here.
const CONFIG: [&str; 2] = ["/usr/share/elasticsearch/config", "/config"];
/// What the entrypoint of the official image does with the password.
const ENTRYPOINT: &str = "test -e /config/elasticsearch.keystore ||
    printf %s \"$ELASTIC_PASSWORD\" | /engine/bin/elasticsearch-keystore add --force --stdin bootstrap.password
exec /engine/bin/elasticsearch";
const PASSWORD: &str = "a password";

/// Deletes the cluster that is there, and makes one as in the document.
pub(super) fn from_the_first_start(fixture: &Fixture, parts: &Parts) {
    fixture.run(&["delete", "searchcluster", "logs"]);
    for object in ["statefulset/logs-all", "secret/logs-all-config", "configmap/logs-bootstrap"] {
        fixture.run(&["wait", "--for=delete", "--timeout=10m", object]);
    }
    fixture.run(&["wait", "--for=delete", "--timeout=10m", "pod", "--selector", "app=logs"]);
    let (authority, certificate, key) = issue(&["logs"]).expect("a certificate").pem();
    fixture.secret("logs-ca", &[("ca.crt", &authority)]);
    let files = [("ca.crt", &authority), ("tls.crt", &certificate), ("tls.key", &key)];
    fixture.secret("logs-certs", &files.map(|(name, pem)| (name, pem.as_str())));
    fixture.secret("logs-user", &[("elastic", PASSWORD)]);
    fixture.run(&["annotate", "secret", "logs-user", "stayput.dev/allow=logs"]);

    let began = Instant::now();
    fixture.admin().apply(&cluster(fixture, parts));
    until_replicas(fixture, 3);
    let ready = "--for=jsonpath={.status.counts.ready}=3";
    fixture.run(&["wait", "searchcluster", "logs", ready, "--timeout=15m"]);
    let nodes = observe_all(fixture, STAYPUT);
    let addresses = nodes.values().map(|node| node.address.clone());
    let client = TlsClient::new("logs", &authority, PASSWORD, addresses);
    let health = "_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
    eventually("three nodes, green, over TLS", || {
        (client.ask("GET", health, None)?["timed_out"] == false).then_some(())
    });
    println!("three nodes with TLS and a password: {} ms", began.elapsed().as_millis());
    for node in nodes.values() {
        assert!(node.ask("/_cluster/health").is_none(), "it has TLS only");
    }
    assert_eq!(client.status_without_a_password(), "401");
    let document = json!({ "id": 1 });
    let target = "docs/_doc/1?refresh&wait_for_active_shards=2";
    let put = client.ask("PUT", target, Some(&document));
    // The client asks again if an answer is late.
    let result = put.expect("it is taken")["result"].take();
    assert!(result == "created" || result == "updated", "{result}");

    // The reconciler has the CA and the password, too.
    fixture.until_idle();
    let began = Instant::now();
    fixture.people.run("kubectl stayput -n search restart logs --node logs-all-1 --watch");
    println!("a node restarted over TLS: {} ms", began.elapsed().as_millis());
    for (name, node) in observe_all(fixture, STAYPUT) {
        assert_eq!(node.stays, nodes[&name].stays, "{name} is another pod or container");
        assert_eq!(node.run() == nodes[&name].run(), name != "logs-all-1", "{name}");
    }
    assert!(client.ask("GET", "docs/_doc/1", None).is_some(), "the document is there");
}

/// The document's YAML, with what the official image has and ours mounts from the machine.
fn cluster(fixture: &Fixture, parts: &Parts) -> Value {
    let documented = documented(fixture);
    let set = &documented["spec"]["nodeSets"][0];
    let mut cluster = declared(fixture, parts, "all", 3, &set["config"]);
    let spec = &mut cluster["spec"];
    spec["engine"] = documented["spec"]["engine"].clone();
    spec["engine"]["image"] = json!(ENGINE);
    let (ours, theirs) =
        (&mut spec["nodeSets"][0]["podTemplate"]["spec"], &set["podTemplate"]["spec"]);
    add(&mut ours["volumes"], &theirs["volumes"]);
    let (ours, theirs) = (&mut ours["containers"][0], &theirs["containers"][0]);
    assert_eq!(ours["name"], theirs["name"]);
    ours["command"] = json!([STAYPUT, "run", "--", "/bin/sh", "-c", ENTRYPOINT]);
    // The reconciler knows how a node with TLS is ready.
    let is_ours = |variable: &Value| variable["name"] != "STAYPUT_READY";
    ours["env"].as_array_mut().expect("a list").retain(is_ours);
    add(&mut ours["env"], &theirs["env"]);
    let mut mounts = theirs["volumeMounts"].clone();
    for mount in mounts.as_array_mut().expect("a list") {
        let path = mount["mountPath"].as_str().expect("a path");
        mount["mountPath"] = json!(path.replace(CONFIG[0], CONFIG[1]));
    }
    add(&mut ours["volumeMounts"], &mounts);
    cluster
}

fn add(to: &mut Value, more: &Value) {
    let more = more.as_array().expect("a list").iter().cloned();
    to.as_array_mut().expect("a list").extend(more);
}

/// The block of the document, as kubectl reads it.
fn documented(fixture: &Fixture) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/declared.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, rest) = text.split_once("**TLS from the first start.**").expect("the section");
    let (_, block) = rest.split_once("```yaml\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    let head = "apiVersion: stayput.dev/v1alpha1\nkind: SearchCluster\n\
                metadata: {name: logs, namespace: search}\n";
    fixture.people.write("https.yaml", &format!("{head}{block}"));
    let read = "kubectl create --dry-run=client --output=json --filename=https.yaml";
    serde_json::from_str(&fixture.people.run(read)).expect("JSON")
}
