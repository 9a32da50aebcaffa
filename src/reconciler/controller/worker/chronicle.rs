//! What a change of the ledger means, for logs and metrics.

use std::collections::BTreeMap;

use crate::controller::metrics::Metrics;
use stayput_restart::{Action, Ledger, Member, Step, Time};

/// When the engines of nodes under way were first told to run again, by uid of the pod. Forgotten
/// with the process: then two phases of a node are not counted.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    started: BTreeMap<String, Time>,
}

impl Chronicle {
    /// Notes that these actions were carried out.
    pub(super) fn acted(
        &mut self,
        actions: &[&Action],
        ledger: &Ledger,
        now: Time,
        metrics: &Metrics,
    ) {
        let Some(restart) = &ledger.restart else { return };
        for action in actions {
            let Action::Start { uid, .. } = action else { continue };
            let member = restart.members.iter().find(|member| member.pod_uid == *uid);
            if let Some(member) = member
                && !self.started.contains_key(uid)
            {
                let strategy = restart.request.strategy.as_str();
                metrics.observe_phase("stop", strategy, seconds(member.since, now));
                self.started.insert(uid.clone(), now);
            }
        }
    }

    /// Counts and logs what is in `after` and not in `before`.
    pub(super) fn wrote(
        &mut self,
        cluster: &str,
        before: &Ledger,
        after: &Ledger,
        now: Time,
        metrics: &Metrics,
    ) {
        let (before_id, after_id) = (id(before), id(after));
        let (was, is) = (members(before), members(after));
        for (uid, member) in &is {
            if was.get(uid).map(|member| member.step) != Some(member.step) {
                tracing::info!(
                    cluster,
                    restart = after_id,
                    node = member.node,
                    step = word(member.step),
                    stop = member.stop_sequence,
                    start = member.start_sequence,
                    "ledger written"
                );
            }
        }
        let strategy =
            before.restart.as_ref().map_or("", |restart| restart.request.strategy.as_str());
        for (uid, member) in was.iter().filter(|(_, member)| member.is_under_way()) {
            // The end of the last node is often the end of the restart.
            let over = before_id != after_id
                || is.get(uid).is_none_or(|member| member.step == Step::Finished);
            if over && let Some(started) = self.started.remove(*uid) {
                metrics.observe_phase("start", strategy, seconds(started, now));
                tracing::info!(
                    cluster,
                    restart = before_id,
                    node = member.node,
                    seconds = seconds(member.since, now),
                    "the node's turn is over"
                );
            }
        }
        for entry in after.history.iter().filter(|entry| !before.history.contains(entry)) {
            metrics.count_restart(entry.outcome.as_str(), entry.strategy.as_str());
            tracing::info!(
                cluster,
                restart = entry.id,
                outcome = entry.outcome.as_str(),
                seconds = entry.seconds,
                nodes = entry.nodes,
                "restart over: {}",
                entry.reason
            );
        }
    }
}

fn id(ledger: &Ledger) -> &str {
    ledger.restart.as_ref().map_or("", |restart| restart.request.id.as_str())
}

fn members(ledger: &Ledger) -> BTreeMap<&str, &Member> {
    ledger.members().map(|member| (member.pod_uid.as_str(), member)).collect()
}

fn seconds(from: Time, to: Time) -> f64 {
    // A phase of more than fifty days counts as one of fifty days.
    f64::from(u32::try_from(to.since(from)).unwrap_or(u32::MAX)) / 1000.0
}

const fn word(step: Step) -> &'static str {
    match step {
        Step::Scheduled => "scheduled",
        Step::Restarting => "restarting",
        Step::Aborting => "aborting",
        Step::Finished => "finished",
    }
}
