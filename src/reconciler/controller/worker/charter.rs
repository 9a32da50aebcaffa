//! The spec that is worked by: the newest one, or, while that is invalid and something was begun,
//! the last one that was not, as if paused. Nobody's mistake keeps a node stopped.

use std::sync::Arc;

use super::status::blocked;
use crate::cluster::{Checked, SearchCluster, SearchClusterSpec};
use stayput_restart::{OnConfigChange, Report, Time};

/// What of earlier specs is still needed.
#[derive(Debug, Default)]
pub(super) struct Charter {
    /// The last spec without a fault. Forgotten with the process.
    valid: Option<(SearchClusterSpec, Checked)>,
    /// What is wrong with the newest spec.
    pub(super) faults: Vec<String>,
    /// What is worked by in its place.
    instead: Option<SearchClusterSpec>,
}

impl Charter {
    /// What to work by; none if the spec is invalid, and nothing is under way that it could harm.
    pub(super) fn judge(&mut self, cluster: &SearchCluster) -> Option<Checked> {
        let faults = match cluster.check() {
            Ok(checked) => {
                let valid = Some((cluster.spec.clone(), checked.clone()));
                *self = Self { valid, ..Self::default() };
                return Some(checked);
            }
            Err(faults) => faults,
        };
        self.faults = faults.iter().map(ToString::to_string).collect();
        self.instead = None;
        if !owes(cluster) && cluster.metadata.deletion_timestamp.is_none() {
            return None;
        }
        let (mut spec, mut checked) = match &self.valid {
            Some(valid) => valid.clone(),
            None => (cluster.spec.clone(), cluster.salvage()?),
        };
        spec.paused = true;
        checked.policy.on_config_change = OnConfigChange::None;
        self.instead = Some(spec);
        Some(checked)
    }

    /// The SearchCluster with the spec that is worked by. Its status is all we ever write whole, and
    /// then the apiserver does not look at the spec.
    pub(super) fn apply(&self, cluster: Arc<SearchCluster>) -> Arc<SearchCluster> {
        match &self.instead {
            Some(spec) => {
                Arc::new(SearchCluster { spec: spec.clone(), ..SearchCluster::clone(&cluster) })
            }
            None => cluster,
        }
    }

    /// The report with what is wrong with the spec in it.
    pub(super) fn mark(&self, report: Report, now: Time) -> Report {
        if self.faults.is_empty() {
            return report;
        }
        let message = format!(
            "{}; meanwhile what was begun is brought to its end by the spec as it was before, and \
             no further node is stopped",
            self.faults.join("; ")
        );
        blocked(report, "invalid_spec", "invalid_spec", message, now)
    }
}

/// Whether the ledger holds anything that has to be brought to its end.
pub(super) fn owes(cluster: &SearchCluster) -> bool {
    cluster.status.as_ref().is_some_and(|status| {
        let ledger = &status.ledger;
        ledger.restart.is_some() || !ledger.debts.is_empty() || !ledger.kept_stopped.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn cluster(restart: &Value, status: &Value) -> SearchCluster {
        serde_json::from_value(json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": {"name": "logs", "namespace": "default"},
            "spec": {
                "pods": {"selector": {"matchLabels": {"app": "logs"}}},
                "engine": {"scheme": "http"},
                "manager": {"caSecret": "ca", "auth": {"jwtKeySecret": "key"}},
                "restart": restart,
            },
            "status": status,
        }))
        .expect("a SearchCluster")
    }

    fn begun() -> Value {
        json!({"keptStopped": [{"podUid": "u", "node": "logs-0", "sequence": 1}]})
    }

    #[test]
    fn with_nothing_begun_an_invalid_spec_is_refused() {
        let mut charter = Charter::default();
        let invalid = cluster(&json!({"maxUnavailable": 0}), &json!({}));
        assert!(charter.judge(&invalid).is_none());
        assert!(charter.faults[0].contains("maxUnavailable"), "{:?}", charter.faults);
    }

    #[test]
    fn what_was_begun_goes_on_by_the_last_valid_spec_as_if_paused() {
        let mut charter = Charter::default();
        let valid = cluster(&json!({"phaseTimeout": "7m", "onConfigChange": "rolling"}), &begun());
        assert!(charter.judge(&valid).is_some());
        let invalid = Arc::new(cluster(&json!({"phaseTimeout": "7x"}), &begun()));
        let checked = charter.judge(&invalid).expect("something to work by");
        assert_eq!(checked.policy.phase_timeout, 7 * 60 * 1000);
        assert_eq!(checked.policy.on_config_change, OnConfigChange::None);
        let applied = charter.apply(invalid);
        assert!(applied.spec.paused);
        assert_eq!(applied.spec.restart, valid_spec(&valid));
        let report = charter.mark(Report::default(), Time(0));
        assert_eq!(report.blocked.as_deref(), Some("invalid_spec"));
        assert!(charter.judge(&valid).is_some());
        assert_eq!(charter.mark(Report::default(), Time(0)), Report::default());
    }

    fn valid_spec(cluster: &SearchCluster) -> crate::cluster::RestartSpec {
        cluster.spec.restart.clone()
    }

    #[test]
    fn without_a_valid_spec_known_what_can_be_used_of_the_invalid_one_is() {
        let mut charter = Charter::default();
        let invalid = cluster(&json!({"phaseTimeout": "7x"}), &begun());
        let checked = charter.judge(&invalid).expect("something to work by");
        assert_eq!(checked.policy.phase_timeout, 15 * 60 * 1000, "the default");
    }
}
