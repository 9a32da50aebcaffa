//! Chooses the spec to reconcile: the newest one. While that is invalid, or the apiserver drops fields, and
//! something is unfinished, the last valid one, as if paused: an error must not keep a node stopped.

use std::sync::Arc;

use crate::status::{Until, blocked};
use stayput_kube_access::cluster::{Checked, SearchCluster, SearchClusterSpec};
use stayput_restart::{OnConfigChange, Report, Time};

/// Reason why the newest spec is not reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The spec that is reconciled. It stands beside the object, whose own spec may be an invalid one.
#[derive(Debug, Clone)]
pub(super) struct EffectiveSpec {
    /// The newest spec, completed by its defaults, or an older one.
    pub(super) spec: Arc<SearchClusterSpec>,
    pub(super) checked: Checked,
    /// Reason for not starting new work; `None` if the newest spec is reconciled.
    refusal: Option<Refusal>,
}

impl EffectiveSpec {
    /// Chooses the spec to reconcile. `definition` is the fault of the installed CRD.
    ///
    /// # Errors
    /// The reason why it is not the newest one, if nothing is unfinished and the object is not being deleted,
    /// or if not even the pods and their managers are known.
    pub(super) fn resolve(
        cluster: &SearchCluster,
        last_valid: Option<&Self>,
        definition: Option<&str>,
    ) -> Result<Self, Refusal> {
        let spec = || Arc::new(cluster.completed_spec().into_owned());
        let (known, refusal) = match (cluster.check(), definition) {
            (Ok(checked), None) => return Ok(Self { spec: spec(), checked, refusal: None }),
            (Ok(checked), Some(fault)) => {
                let (code, message) = ("outdated_definition", fault.to_owned());
                (Some((spec(), checked)), Refusal { code, message })
            }
            (Err(faults), _) => {
                let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                let refusal = Refusal { code: "invalid_spec", message: faults.join("; ") };
                let last = last_valid.map(|valid| (valid.spec.clone(), valid.checked.clone()));
                (last.or_else(|| Some((spec(), cluster.salvage()?))), refusal)
            }
        };
        if !is_unfinished(cluster) && cluster.metadata.deletion_timestamp.is_none() {
            return Err(refusal);
        }
        let Some((mut spec, mut checked)) = known else { return Err(refusal) };
        Arc::make_mut(&mut spec).paused = true;
        checked.policy.on_config_change = OnConfigChange::None;
        Ok(Self { spec, checked, refusal: Some(refusal) })
    }

    /// True if the newest spec is the one reconciled.
    pub(super) fn is_newest(&self) -> bool {
        self.refusal.is_none()
    }

    /// The report, with the reason for not starting new work.
    pub(super) fn report_refusal(&self, report: Report, now: Time) -> Report {
        let Some(Refusal { code, message }) = &self.refusal else { return report };
        let message = format!(
            "{message}; until this is corrected, running restarts finish with the last valid spec, and \
             no further node is stopped"
        );
        blocked(report, code, code, message, Until::Later, now)
    }
}

/// True if the ledger holds a restart, debts or nodes kept stopped.
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
        json!({"ledger": {"keptStopped": [{"podUid": "u", "node": "logs-0", "sequence": 1}]}})
    }

    #[test]
    fn with_nothing_begun_an_invalid_spec_is_refused() {
        let invalid = cluster(&json!({"maxUnavailable": 0}), &json!({}));
        let faults = EffectiveSpec::resolve(&invalid, None, None).expect_err("it is invalid");
        assert!(faults.message.contains("maxUnavailable"), "{faults:?}");
    }

    #[test]
    fn what_was_begun_goes_on_by_the_last_valid_spec_as_if_paused() {
        let valid = cluster(&json!({"phaseTimeout": "7m", "onConfigChange": "rolling"}), &begun());
        let last = EffectiveSpec::resolve(&valid, None, None).expect("valid");
        assert!(last.is_newest());
        let invalid = cluster(&json!({"phaseTimeout": "7x"}), &begun());
        let spec =
            EffectiveSpec::resolve(&invalid, Some(&last), None).expect("the last valid spec");
        assert!(!spec.is_newest());
        assert_eq!(spec.checked.policy.phase_timeout, 7 * 60 * 1000);
        assert_eq!(spec.checked.policy.on_config_change, OnConfigChange::None);
        assert!(spec.spec.paused);
        assert_eq!(spec.spec.restart, valid.spec.restart);
        let report = spec.report_refusal(Report::default(), Time(0));
        assert_eq!(report.blocked.as_deref(), Some("invalid_spec"));
        let spec = EffectiveSpec::resolve(&valid, Some(&last), None).expect("valid again");
        assert_eq!(spec.report_refusal(Report::default(), Time(0)), Report::default());
    }

    #[test] // proves DOCTOR-5
    fn while_the_apiserver_drops_fields_only_what_was_begun_goes_on() {
        let fault = Some("it has no status.ledger");
        let idle = cluster(&json!({}), &json!({}));
        let refusal = EffectiveSpec::resolve(&idle, None, fault).expect_err("nothing was begun");
        assert_eq!(refusal.code, "outdated_definition");
        let under_way = cluster(&json!({"onConfigChange": "rolling"}), &begun());
        let spec = EffectiveSpec::resolve(&under_way, None, fault).expect("this spec");
        assert!(spec.spec.paused && !spec.is_newest());
        assert_eq!(spec.checked.policy.on_config_change, OnConfigChange::None);
        let report = spec.report_refusal(Report::default(), Time(0));
        assert_eq!(report.blocked.as_deref(), Some("outdated_definition"));
        assert!(report.message.is_some_and(|message| message.contains("status.ledger")));
        // A mistake in the spec is told first: it may be older than the definition.
        let invalid = cluster(&json!({"maxUnavailable": 0}), &json!({}));
        let refusal = EffectiveSpec::resolve(&invalid, None, fault).expect_err("it is invalid");
        assert_eq!(refusal.code, "invalid_spec");
    }

    #[test]
    fn without_a_valid_spec_known_what_can_be_used_of_the_invalid_one_is() {
        let invalid = cluster(&json!({"phaseTimeout": "7x"}), &begun());
        let spec = EffectiveSpec::resolve(&invalid, None, None).expect("something to reconcile");
        assert_eq!(spec.checked.policy.phase_timeout, 15 * 60 * 1000, "the default");
    }
}
