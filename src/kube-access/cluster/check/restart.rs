//! Checks `spec.restart`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Problems;
use crate::cluster::windows::Windows;
use crate::cluster::{RestartSpec, WindowSpec};
use stayput_api::Span;
use stayput_restart::{Disabled, Drain, Policy, Share};

impl Problems {
    pub(super) fn restart(&mut self, restart: &RestartSpec) -> Policy {
        let max_unavailable = self.share("restart.maxUnavailable", &restart.max_unavailable);
        let mut max_unavailable_of_role = BTreeMap::new();
        for (role, share) in &restart.max_unavailable_of_role {
            let field = format!("restart.maxUnavailableOfRole.{role}");
            if role.is_empty() || role.trim() != role {
                self.add(&field, format!("{role:?} is no role: write one such as data_hot"));
            }
            if let Some(share) = self.share(&field, share) {
                max_unavailable_of_role.insert(role.clone(), share);
            }
        }
        let phase_timeout = self.duration("restart.phaseTimeout", &restart.phase_timeout);
        let drain = match restart.drain.as_str() {
            "auto" => Some(Drain::Auto),
            span => self.duration("restart.drain", span).map(Drain::Fixed),
        };
        if let (Some(timeout), Some(drain)) = (phase_timeout, drain)
            && drain.longest() >= timeout
        {
            self.add(
                "restart.drain",
                format!(
                    "{} leaves nothing of restart.phaseTimeout, {}: make it shorter",
                    humantime::format_duration(Duration::from_millis(drain.longest())),
                    restart.phase_timeout
                ),
            );
        }
        self.windows(&restart.windows);
        Policy {
            max_unavailable: max_unavailable.unwrap_or(Share::Nodes(1)),
            max_unavailable_of_role,
            disabled: Disabled::of(restart.disabled_predicates.iter().map(String::as_str)),
            zone_attribute: restart.zone_attribute.clone(),
            allow_outage: restart.allow_outage,
            phase_timeout: phase_timeout.unwrap_or_default(),
            drain: drain.unwrap_or(Drain::Auto),
            on_config_change: restart.on_config_change,
            rollback: restart.rollback,
            ..Policy::default()
        }
    }

    fn windows(&mut self, all: &[WindowSpec]) {
        for (index, written) in all.iter().enumerate() {
            if let Err(invalid) = Windows::default().add(written) {
                let field = format!("restart.windows[{index}].{}", invalid.field);
                self.add(field, invalid.problem);
            }
        }
    }

    fn share(&mut self, field: &str, written: &IntOrString) -> Option<Share> {
        let share = match written {
            IntOrString::Int(nodes) => Share::nodes(i64::from(*nodes)),
            IntOrString::String(text) => Share::percent(text),
        };
        share.map_err(|problem| self.add(field, problem.to_string())).ok()
    }

    fn duration(&mut self, field: &str, text: &str) -> Option<u64> {
        Span::parse(text)
            .map(|span| span.0)
            .map_err(|problem| self.add(field, problem.to_string()))
            .ok()
    }
}
