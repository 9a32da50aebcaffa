//! ECK that is upgraded itself: a newer one has other defaults, and so other templates.

use crate::pods::eck::edits::Edits;

/// By this option ECK writes no security context, which only another pod can lose.
const OTHER_DEFAULTS: &str = "--set-default-security-context=false";

impl Edits {
    /// `diff` and the status show it, and nobody does anything.
    pub(super) fn eck_with_other_defaults(&mut self) {
        let revision = self.stage.revision();
        self.stage.operator.kill();
        self.stage.operator.start_with(&[OTHER_DEFAULTS]);
        self.stage.until_another_revision(&revision);
        let message = self.until_told();
        println!("other defaults of ECK: {message}");
        assert!(message.contains("securityContext"), "{message}");
        let diff = self.fixture().people.run("kubectl stayput -n search diff logs");
        println!("{diff}");
        assert!(diff.contains("securityContext"), "{diff}");
        self.stage.operator.kill();
        self.stage.operator.start_again();
        for (was, is) in self.settle() {
            assert_eq!(is, was, "nothing was done");
        }
    }
}
