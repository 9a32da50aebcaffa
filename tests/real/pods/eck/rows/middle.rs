//! What happens while an edit is carried out.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::assert_same_pods;
use crate::pods::eck::edits::{ACTUAL, Edits};
use crate::pods::eck::in_place::BUFFER;
use crate::pods::eck::stage::Stage;
use crate::pods::history::{history, until_another_ended};
use crate::pods::seen::seen;

const CONFIG: &str = "/spec/nodeSets/0/config";
const LENGTH: &str = "http.max_content_length";
/// No engine knows this setting.
const WRONG: &str = "no.such.setting";
/// ECK looks every ten seconds while it has something to do.
const ECK_LOOKS: Duration = Duration::from_secs(25);

impl Edits {
    /// The node under way is finished and restarted once more; another is perhaps never stopped.
    pub(super) fn set_back_in_the_middle(&mut self) {
        self.in_the_middle("set back", "13%", |stage| stage.unset(BUFFER));
        self.assert_setting(BUFFER, Value::Null);
    }

    pub(super) fn edited_again_in_the_middle(&mut self) {
        self.in_the_middle("edited again", "14%", |stage| stage.set(LENGTH, "90mb"));
        self.assert_setting(BUFFER, "14%");
        self.assert_setting(LENGTH, "90mb");
    }

    /// Somebody lets ECK delete pods again.
    pub(super) fn another_budget_in_the_middle(&mut self) {
        self.in_the_middle("another budget", "15%", |stage| stage.set_budget(&json!(2)));
        self.assert_setting(BUFFER, "15%");
        self.stage.set_budget(&json!(0));
    }

    /// One node is down on it, and ECK leaves its pod alone. It is started on another edit, and also once the setting
    /// is taken back.
    pub(super) fn wrong_and_repaired(&mut self) {
        let others = self.wrong();
        let repair = json!([
            { "op": "remove", "path": format!("{CONFIG}/{WRONG}") },
            { "op": "add", "path": format!("{CONFIG}/{BUFFER}"), "value": "18%" },
        ]);
        self.stage.edit(&repair);
        self.settle_but_one("a wrong setting, repaired", &others);
        self.assert_setting(BUFFER, "18%");

        let others = self.wrong();
        self.stage.unset(WRONG);
        self.settle_but_one("a wrong setting, taken back", &others);
    }

    /// A setting that no engine knows: one node is stopped for it, and its pod stays. Returns the others.
    fn wrong(&mut self) -> BTreeSet<String> {
        let known = history(self.fixture()).len();
        self.stage.set(WRONG, "1");
        let entry = until_another_ended(self.fixture(), known);
        println!("a wrong setting: {entry}");
        assert_ne!(entry["outcome"], "done", "{entry:#}");
        // This time is measured; it is not a wait for something.
        sleep(ECK_LOOKS);
        let pods = seen(self.fixture());
        assert!(pods.iter().all(|pod| self.engines[&pod.name].pod == *pod), "{pods:#?}");
        let started = self.stage.started();
        let others = started.into_iter().filter(|(name, at)| self.engines[name].started == *at);
        let others: BTreeSet<String> = others.map(|(name, _)| name).collect();
        assert_eq!(others.len(), self.engines.len() - 1, "one node was stopped: {others:?}");
        others
    }

    /// Labels are what the pods are made from, and nothing of ours is left; a new SearchCluster finishes it.
    pub(super) fn search_cluster_deleted_in_the_middle(&mut self) {
        let (old, before) = (self.stage.revision(), self.engines.clone());
        self.stage.set(BUFFER, "16%");
        self.stage.until_one_is_stopped();
        self.fixture().run(&["delete", "searchcluster", "logs"]);
        let started = self.stage.engines_now();
        let new = self.stage.revision();
        for pod in self.fixture().pods() {
            let (labels, annotations) =
                (&pod["metadata"]["labels"], &pod["metadata"]["annotations"]);
            let name = pod["metadata"]["name"].as_str().expect("a name");
            let is_restarted = started[name].started != before[name].started;
            let expected = if is_restarted { &new } else { &old };
            assert_eq!(labels["controller-revision-hash"], **expected, "{name}, {is_restarted}");
            for ours in [ACTUAL, "elasticsearch.k8s.elastic.co/restart-phase"] {
                assert_eq!(annotations[ours], Value::Null, "{name}: {ours}");
            }
        }
        self.stage.assert_no_settings();
        self.fixture().people.run("kubectl stayput --namespace search init logs");
        self.stage.carry_out();
        assert_same_pods(&self.settle());
        self.assert_setting(BUFFER, "16%");
    }

    /// Edits a setting, and does something once the first node is stopped for it.
    fn in_the_middle(&mut self, what: &str, value: &str, then: impl FnOnce(&Stage)) {
        self.stage.set(BUFFER, value);
        let others = self.stage.until_one_is_stopped();
        then(&self.stage);
        self.settle_but_one(what, &others);
    }

    /// Waits until nobody has anything left to do. A pod that is down is not ready: if ECK sees another revision
    /// before its label is changed, it deletes the pod, whatever its budget is. The others are the pods from before.
    fn settle_but_one(&mut self, what: &str, others: &BTreeSet<String>) {
        let (written, began) = (self.clients.written(), Instant::now());
        let (same, down): (Vec<_>, Vec<_>) =
            self.settle().into_iter().partition(|(was, _)| others.contains(&was.pod.name));
        self.stage.meet_new_pods();
        assert_same_pods(&same);
        assert!(down.iter().all(|(was, is)| is.pod.claim == was.pod.claim), "{down:#?}");
        let replaced = down.iter().filter(|(was, is)| is.pod.uid != was.pod.uid).count();
        let took = began.elapsed().as_millis();
        println!("{what}: {took} ms; ECK has replaced {replaced} pod that was down");
        assert!(self.clients.written() > written, "nothing was written meanwhile");
    }
}
