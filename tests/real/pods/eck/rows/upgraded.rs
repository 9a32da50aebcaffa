//! ECK that is upgraded itself: a newer one has other defaults, and so other templates.

use serde_json::json;

use crate::pods::eck::edits::Edits;

/// By this option ECK writes another `network.host` into every config.
const OTHER_DEFAULTS: &str = "--ip-family=IPv4";

impl Edits {
    /// With the mode off nothing is done, and `diff` shows it; then it is carried out in place.
    pub(super) fn eck_with_other_defaults(&mut self) {
        self.fixture().configure(&json!({ "update": { "mode": "off" } }));
        let revision = self.stage.revision();
        self.stage.operator.start_with(&[OTHER_DEFAULTS]);
        self.stage.until_another_revision(&revision);
        self.fixture().until_pending(3);
        let diff = self.fixture().people.run("kubectl stayput -n search diff logs");
        println!("{diff}");
        assert!(diff.contains("restart"), "{diff}");
        assert_eq!(self.stage.engines_now(), self.engines, "nothing is done before");
        self.restarted("other defaults of ECK", |stage| {
            stage.carry_out();
        });
        self.assert_setting("network.host", "0.0.0.0");
    }
}
