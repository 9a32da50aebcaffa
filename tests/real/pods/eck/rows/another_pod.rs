//! Edits that need another pod.

use serde_json::{Value, json};

use super::assert_other_pods;
use crate::pods::eck::edits::Edits;
use crate::pods::eck::elasticsearch::IMAGE;
use crate::pods::history::history;
use crate::pods::history::until_another_ended;
use crate::support::wait::eventually;

const OTHER: &str = "stayput.test/elasticsearch/elasticsearch:8.19.0-other";
const SECRET: &str = "extra";
/// The only secure setting that the modules of the engines here know.
const SECURE: &str = "telemetry.secret_token";

impl Edits {
    /// Not allowed: told with the command by which ECK does it, one node at a time.
    pub(super) fn image_left_to_eck(&mut self) {
        self.fixture().configure(&json!({ "update": { "allow": null } }));
        self.fixture().cluster.images.tag(IMAGE, OTHER);
        self.stage.edit(&json!([{ "op": "replace", "path": "/spec/image", "value": OTHER }]));
        let message = self.until_told();
        println!("an image: {message}");
        let command = message.split('`').find(|part| part.contains("maxUnavailable"));
        let command = command.unwrap_or_else(|| panic!("no command: {message}"));
        let before: Vec<_> = self.engines.values().cloned().collect();
        assert_eq!(self.stage.engines_now(), self.engines, "nothing is done before");
        self.fixture().people.run(command);
        self.stage.until_all_replaced(&before);
        assert_other_pods(&self.settle());
        self.stage.set_budget(&json!(0));
    }

    /// Allowed: by our rules, with the budget that lets ECK delete nothing.
    pub(super) fn secure_setting(&mut self) {
        self.fixture().people.run("kubectl apply -k deploy/replace");
        let allow = ["relabel", "restart", "container", "resize", "replace"];
        self.fixture().configure(&json!({ "update": { "allow": allow } }));
        self.replaced("a secure setting", |edits| {
            edits.fixture().secret(SECRET, &[(SECURE, "one")]);
            let settings = json!([{ "secretName": SECRET }]);
            let add = json!({ "op": "add", "path": "/spec/secureSettings", "value": settings });
            edits.stage.edit(&json!([add]));
        });
    }

    /// Only the annotation `config-hash` of the template changes, as for a setting.
    pub(super) fn another_secure_setting(&mut self) {
        self.replaced("another value of it", |edits| {
            edits.fixture().secret(SECRET, &[(SECURE, "two")]);
        });
    }

    /// Each pod is replaced by our rules.
    fn replaced(&mut self, what: &str, edit: impl FnOnce(&Self)) {
        let known = history(self.fixture()).len();
        let before: Vec<_> = self.engines.values().cloned().collect();
        edit(self);
        self.stage.until_all_replaced(&before);
        let entry = until_another_ended(self.fixture(), known);
        println!("{what}: {entry}");
        assert_eq!(entry["outcome"], "done", "{entry:#}");
        assert_other_pods(&self.settle());
    }

    /// What the status says of the update of all nodes, which is not allowed.
    pub(super) fn until_told(&self) -> String {
        eventually("the status says that it is not allowed", || {
            let status = self.fixture().logs()["status"].take();
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let nodes = status["nodes"].as_array()?.iter();
            let told = nodes.filter(|node| node["waitsFor"] == "update_not_allowed");
            let told: Vec<String> = told.filter_map(|node| text(&node["message"])).collect();
            (told.len() == self.stage.nodes).then(|| told[0].clone())
        })
    }
}
