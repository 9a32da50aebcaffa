//! Real clusters pass the suite of the stand-in engines.

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, Flavor, PodIdentity, Seat};
use crate::support::engine::Kind;
use crate::support::skip;
use stayput_conformance::engine::{self as suite, STORIES, run_story};

impl suite::Cluster for Cluster {
    fn is_elasticsearch(&self) -> bool {
        self.flavor().kind() == Kind::Elasticsearch
    }

    fn name(&self, node: usize) -> String {
        self.members[node].pod.name.clone()
    }

    fn ask(
        &self,
        node: usize,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let answer = self.members[node].rest.send(method, target, body).ok()?;
        Some((answer.status, answer.body))
    }

    fn stop(&mut self, node: usize) {
        self.members[node].manager().api.stop();
    }

    fn start(&mut self, node: usize) {
        // Without waiting: the first node is only ready with the next one.
        let answer = self.members[node].manager().api.post("/es/start", &json!({}));
        assert!(matches!(answer.status, 200 | 202), "{}: {:#}", answer.status, answer.body);
    }
}

/// One cluster for all cases, because a real one takes some time to form.
fn on(name: &str, flavor: Flavor) {
    let mut cluster =
        match Cluster::prepare(flavor, "search", Seat::all_rounders(PodIdentity::three()), None) {
            Ok(cluster) => cluster,
            Err(why) => return skip(name, &why),
        };
    cluster.start();
    for story in STORIES {
        run_story(&mut cluster, *story);
    }
}

#[test] // proves DECLARE-38
fn opensearch_is_what_the_stand_in_stands_for() {
    let name = "engine_stories::opensearch_is_what_the_stand_in_stands_for";
    on(name, Flavor::OpenSearch);
}

#[test]
#[ignore = "five minutes; cargo test --test real -- --ignored engine_stories"]
fn elasticsearch_is_what_the_stand_in_stands_for() {
    let name = "engine_stories::elasticsearch_is_what_the_stand_in_stands_for";
    on(name, Flavor::ElasticsearchWithRecords);
}
