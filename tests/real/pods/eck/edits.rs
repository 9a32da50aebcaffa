//! A person edits the `Elasticsearch`: what becomes of the pods, of the engines in them, and of the documents
//! that a client writes meanwhile.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::stage::Stage;
use crate::pods::clients::{Clients, Count};
use crate::pods::fixture::Fixture;
use crate::pods::history::{history, until_another_ended, waits};
use crate::pods::seen::{Seen, seen};
use crate::support::wait::{eventually, eventually_or};

/// The annotation of a pod that is labelled before it is as its label says.
pub(super) const ACTUAL: &str = "stayput.dev/actual-revision";

/// A pod, and the engine in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Engine {
    pub(super) pod: Seen,
    /// When its JVM was started, in milliseconds.
    pub(super) started: u64,
}

impl Engine {
    /// Checks that nothing but the engine's process is another one than before.
    #[track_caller]
    pub(super) fn assert_restarted_in_place(&self, was: &Self) {
        assert_eq!(self.pod, was.pod, "another pod or container");
        assert_ne!(self.started, was.started, "{} was not restarted", self.pod.name);
    }
}

/// The cluster, a client of it, and its pods as they were last.
pub(super) struct Edits {
    pub(super) stage: Stage,
    pub(super) clients: Clients,
    pub(super) engines: BTreeMap<String, Engine>,
}

impl Edits {
    /// With an index, and a client that writes from now on.
    pub(super) fn begin(stage: Stage) -> Self {
        stage.create_load();
        let clients = Clients::start(&stage.fixture, stage.door());
        let engines = stage.engines_now();
        Self { stage, clients, engines }
    }

    pub(super) fn fixture(&self) -> &Fixture {
        &self.stage.fixture
    }

    /// Does something that one restart carries out; returns the engines before, and when nobody has anything left
    /// to do.
    pub(super) fn row(
        &mut self,
        what: &str,
        edit: impl FnOnce(&mut Stage),
    ) -> Vec<(Engine, Engine)> {
        let (known, written) = (history(self.fixture()).len(), self.clients.written());
        let began = Instant::now();
        edit(&mut self.stage);
        let entry = until_another_ended(self.fixture(), known);
        println!("{what}: over after {} ms: {entry}", began.elapsed().as_millis());
        assert_eq!(entry["outcome"], "done", "{entry:#}");
        let pairs = self.settle();
        println!("{what}: all are content after {} ms", began.elapsed().as_millis());
        assert!(self.clients.written() > written, "nothing was written meanwhile");
        pairs
    }

    /// Waits until nobody has anything left to do; returns the engines before and now that are still there.
    pub(super) fn settle(&mut self) -> Vec<(Engine, Engine)> {
        self.stage.until_content();
        self.compare()
    }

    /// The engines as they were at the last comparison, and now, if they are still there.
    pub(super) fn compare(&mut self) -> Vec<(Engine, Engine)> {
        let now = self.stage.engines_now();
        let before = std::mem::replace(&mut self.engines, now.clone());
        let is_there = |(name, was): (String, Engine)| Some((was, now.get(&name)?.clone()));
        before.into_iter().filter_map(is_there).collect()
    }

    /// Ends the client, and finds each document whose write was answered.
    pub(super) fn assert_none_lost(self) -> (Stage, Count) {
        let count = self.clients.end();
        println!("{:?}, {:?}, failing for {:?}", count.writes, count.searches, count.failing);
        let ids: Vec<String> = count.kept.iter().map(|number| format!("client-{number}")).collect();
        let ask = |target: &str, body: Option<&Value>| {
            self.stage.engines.ask("POST", target, body).expect("an answer")
        };
        ask("load/_refresh", None);
        for some in ids.chunks(5_000) {
            let found =
                ask("load/_count", Some(&json!({ "query": { "ids": { "values": some } } })));
            assert_eq!(found["count"], some.len(), "{found:#}");
        }
        (self.stage, count)
    }
}

impl Stage {
    /// Edits the `Elasticsearch` by a JSON patch.
    pub(super) fn edit(&self, patch: &Value) {
        let patch = patch.to_string();
        self.fixture.run(&["patch", "elasticsearch", "logs", "--type=json", "--patch", &patch]);
    }

    /// Lets ECK delete this many healthy pods of an older revision at the same time.
    pub(super) fn set_budget(&self, pods: &Value) {
        let budget = json!({ "changeBudget": { "maxUnavailable": pods } });
        let patch = json!({ "spec": { "updateStrategy": budget } }).to_string();
        self.fixture.run(&["patch", "elasticsearch", "logs", "--type=merge", "--patch", &patch]);
    }

    /// Has edits carried out in place, and lets ECK delete no healthy pod.
    pub(super) fn carry_out(&self) {
        self.set_budget(&json!(0));
        self.fixture.configure(&json!({ "update": { "mode": "inPlace" } }));
    }

    /// The index of the client.
    pub(super) fn create_load(&self) {
        let settings = json!({ "settings": { "number_of_shards": 3, "number_of_replicas": 1 } });
        let target = "load?wait_for_active_shards=all";
        self.engines.ask("PUT", target, Some(&settings)).expect("it is made");
        self.until_green();
    }

    /// The pods, and the engines in them, once all are in the cluster.
    pub(super) fn engines_now(&self) -> BTreeMap<String, Engine> {
        let started = eventually("all nodes are in the cluster", || {
            let started = self.started();
            (started.len() == self.nodes).then_some(started)
        });
        let pods = seen(&self.fixture).into_iter();
        pods.map(|pod| (pod.name.clone(), Engine { started: started[&pod.name], pod })).collect()
    }

    /// When the JVM of each node was started.
    pub(super) fn started(&self) -> BTreeMap<String, u64> {
        let fields = "filter_path=nodes.*.name,nodes.*.jvm.start_time_in_millis";
        let nodes = self.ask(&format!("_nodes/jvm?{fields}"));
        let nodes = nodes.as_ref().and_then(|nodes| nodes["nodes"].as_object());
        let started = nodes.into_iter().flat_map(|nodes| nodes.values()).filter_map(|node| {
            let name = node["name"].as_str()?.to_owned();
            Some((name, node["jvm"]["start_time_in_millis"].as_u64()?))
        });
        started.collect()
    }

    /// Waits until ECK and the reconciler have nothing left to do: each pod is as its label says, and has the
    /// label of the newest revision; no setting of a restart is left in the engines.
    pub(super) fn until_content(&self) {
        self.until_green();
        let unlike = || (!self.unlike().is_empty()).then_some(());
        let explain = || format!(": {:#?}{}", self.unlike(), waits(&self.fixture));
        eventually_or(
            "nobody has anything left to do",
            || unlike().is_none().then_some(()),
            explain,
        );
        self.assert_no_settings();
    }

    /// Checks that no setting of a restart is left in the engines.
    pub(super) fn assert_no_settings(&self) {
        let settings = self.ask("_cluster/settings?flat_settings=true").expect("settings");
        assert_eq!(settings, json!({ "persistent": {}, "transient": {} }));
    }

    /// What is not yet as it is at the end.
    fn unlike(&self) -> Vec<String> {
        let mut unlike = Vec::new();
        let eck = self.elasticsearch();
        let (status, generation) = (&eck["status"], &eck["metadata"]["generation"]);
        if (&status["phase"], &status["health"]) != (&json!("Ready"), &json!("green"))
            || status["observedGeneration"] != *generation
        {
            unlike.push(format!("ECK: {status}"));
        }
        let cluster = &self.fixture.logs()["status"];
        let counts = &cluster["counts"];
        if cluster["phase"] != "Idle"
            || counts["pendingRestart"] != 0
            || counts["pendingUpdate"] != 0
        {
            unlike.push(format!("the SearchCluster: {} {counts}", cluster["phase"]));
        }
        for pod in self.fixture.pods() {
            unlike.extend(self.unlike_its_set(&pod));
        }
        unlike
    }

    /// How a pod is not as the newest revision of its set, if so.
    fn unlike_its_set(&self, pod: &Value) -> Option<String> {
        let (labels, annotations) = (&pod["metadata"]["labels"], &pod["metadata"]["annotations"]);
        let set = labels["elasticsearch.k8s.elastic.co/statefulset-name"].as_str()?;
        let set = self.fixture.read(&format!("statefulsets/{set}"));
        let wanted = &set["status"]["updateRevision"];
        let missing = set["spec"]["template"]["metadata"]["annotations"]
            .as_object()?
            .iter()
            .find(|(name, value)| annotations[name.as_str()] != **value);
        let is_like = labels["controller-revision-hash"] == *wanted
            && annotations[ACTUAL].is_null()
            && missing.is_none();
        (!is_like).then(|| {
            let of = format!("{} {}", pod["metadata"]["name"], labels["controller-revision-hash"]);
            format!("{of}, wanted {wanted}; actual {}; {missing:?}", annotations[ACTUAL])
        })
    }
}
