//! The spec that is reconciled: the newest one. While that is invalid and something is unfinished,
//! the last valid one, as if paused: an error in the spec must not keep a node stopped.

use std::sync::Arc;

use super::status_report::blocked;
use crate::cluster::{Checked, SearchCluster, SearchClusterSpec};
use stayput_restart::{OnConfigChange, Report, Time};

/// A valid spec, kept for the case that the next one is invalid.
#[derive(Debug, Clone)]
pub(super) struct ValidSpec {
    spec: SearchClusterSpec,
    checked: Checked,
}

/// The spec that is reconciled.
#[derive(Debug, Clone)]
pub(super) struct EffectiveSpec {
    pub(super) checked: Checked,
    /// What is wrong with the newest spec; empty if that is the one reconciled.
    faults: Vec<String>,
    /// The spec reconciled in its place: another one, or the same with what it leaves out.
    instead: Option<SearchClusterSpec>,
}

impl EffectiveSpec {
    /// Chooses the spec to reconcile.
    ///
    /// # Errors
    /// What is wrong with the newest spec, if nothing is unfinished and the object is not being
    /// deleted, or if not even the pods and their managers are known.
    pub(super) fn resolve(
        cluster: &SearchCluster,
        last_valid: Option<&ValidSpec>,
    ) -> Result<Self, Vec<String>> {
        let faults = match cluster.check() {
            Ok(checked) => {
                let instead = cluster.is_declared().then(|| cluster.completed_spec().into_owned());
                return Ok(Self { checked, faults: Vec::new(), instead });
            }
            Err(faults) => faults.iter().map(ToString::to_string).collect(),
        };
        if !is_unfinished(cluster) && cluster.metadata.deletion_timestamp.is_none() {
            return Err(faults);
        }
        let known = match last_valid {
            Some(valid) => Some((valid.spec.clone(), valid.checked.clone())),
            None => {
                let spec = || cluster.completed_spec().into_owned();
                cluster.salvage().map(|checked| (spec(), checked))
            }
        };
        let Some((mut spec, mut checked)) = known else { return Err(faults) };
        spec.paused = true;
        checked.policy.on_config_change = OnConfigChange::None;
        Ok(Self { checked, faults, instead: Some(spec) })
    }

    /// What to remember of `cluster` as the last valid spec; none if its spec is invalid.
    pub(super) fn as_valid(&self, cluster: &SearchCluster) -> Option<ValidSpec> {
        let spec = self.instead.clone().unwrap_or_else(|| cluster.spec.clone());
        self.is_newest().then_some(ValidSpec { spec, checked: self.checked.clone() })
    }

    /// Whether the newest spec is the one reconciled.
    pub(super) fn is_newest(&self) -> bool {
        self.faults.is_empty()
    }

    /// The SearchCluster with the spec that is reconciled. Only its status is ever written whole,
    /// and then the apiserver ignores the spec.
    pub(super) fn apply(&self, cluster: Arc<SearchCluster>) -> Arc<SearchCluster> {
        match &self.instead {
            Some(spec) => {
                Arc::new(SearchCluster { spec: spec.clone(), ..SearchCluster::clone(&cluster) })
            }
            None => cluster,
        }
    }

    /// The report, with what is wrong with the newest spec in it.
    pub(super) fn report_faults(&self, report: Report, now: Time) -> Report {
        if self.faults.is_empty() {
            return report;
        }
        let message = format!(
            "{}; until this is corrected, what was begun is finished with the previous spec, and \
             no further node is stopped",
            self.faults.join("; ")
        );
        blocked(report, "invalid_spec", "invalid_spec", message, now)
    }
}

/// Whether the ledger holds anything that has to be finished.
pub(super) fn is_unfinished(cluster: &SearchCluster) -> bool {
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
        let invalid = cluster(&json!({"maxUnavailable": 0}), &json!({}));
        let faults = EffectiveSpec::resolve(&invalid, None).expect_err("it is invalid");
        assert!(faults[0].contains("maxUnavailable"), "{faults:?}");
    }

    #[test]
    fn what_was_begun_goes_on_by_the_last_valid_spec_as_if_paused() {
        let valid = cluster(&json!({"phaseTimeout": "7m", "onConfigChange": "rolling"}), &begun());
        let last = EffectiveSpec::resolve(&valid, None).expect("valid").as_valid(&valid);
        let invalid = Arc::new(cluster(&json!({"phaseTimeout": "7x"}), &begun()));
        let spec = EffectiveSpec::resolve(&invalid, last.as_ref()).expect("the last valid spec");
        assert!(spec.as_valid(&invalid).is_none());
        assert_eq!(spec.checked.policy.phase_timeout, 7 * 60 * 1000);
        assert_eq!(spec.checked.policy.on_config_change, OnConfigChange::None);
        let applied = spec.apply(invalid);
        assert!(applied.spec.paused);
        assert_eq!(applied.spec.restart, valid.spec.restart);
        let report = spec.report_faults(Report::default(), Time(0));
        assert_eq!(report.blocked.as_deref(), Some("invalid_spec"));
        let spec = EffectiveSpec::resolve(&valid, last.as_ref()).expect("valid again");
        assert_eq!(spec.report_faults(Report::default(), Time(0)), Report::default());
    }

    #[test]
    fn without_a_valid_spec_known_what_can_be_used_of_the_invalid_one_is() {
        let invalid = cluster(&json!({"phaseTimeout": "7x"}), &begun());
        let spec = EffectiveSpec::resolve(&invalid, None).expect("something to reconcile");
        assert_eq!(spec.checked.policy.phase_timeout, 15 * 60 * 1000, "the default");
    }
}
