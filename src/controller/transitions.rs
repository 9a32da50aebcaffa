//! Changes between two ledgers, for the log and the metrics.

mod record;

use std::collections::BTreeMap;

use stayput_restart::{Action, HistoryEntry, Ledger, Member, MemberStep, Time};

pub(super) use record::record;

/// Time at which the engine of each member under way was first started again, by uid of the pod. Lost with
/// the process: then the two phases of such a member are not measured.
#[derive(Debug, Clone, Default)]
pub(super) struct StartTimes(BTreeMap<String, Time>);

/// One change of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Transition {
    /// A member entered a step.
    Step { restart: String, node: String, step: &'static str, stop: u64, start: u64 },
    /// The engine of a member was started again, so that its stop is over. `seconds`: since it got its slot.
    Stopped { strategy: &'static str, seconds: f64 },
    /// A member is finished. `seconds`: since its slot; `start`: seconds since its engine was started again.
    Finished { restart: String, node: String, strategy: &'static str, seconds: f64, start: f64 },
    /// A restart has ended.
    Ended(HistoryEntry),
}

/// The changes that these actions made, and the start times after them.
pub(super) fn of_actions(
    actions: &[Action],
    ledger: &Ledger,
    now: Time,
    mut starts: StartTimes,
) -> (Vec<Transition>, StartTimes) {
    let mut transitions = Vec::new();
    let Some(restart) = &ledger.restart else { return (transitions, starts) };
    for action in actions {
        let Action::Start { uid, .. } = action else { continue };
        let member = restart.members.iter().find(|member| member.pod_uid == *uid);
        // A start that gives a slot back only makes the manager refuse the stop.
        if let Some(member) = member.filter(|member| member.step != MemberStep::GivingBack)
            && !starts.0.contains_key(uid)
        {
            let strategy = restart.request.strategy.as_str();
            let seconds = seconds(member.since, now);
            transitions.push(Transition::Stopped { strategy, seconds });
            starts.0.insert(uid.clone(), now);
        }
    }
    (transitions, starts)
}

/// The changes from one ledger to another, and the start times after them.
pub(super) fn between(
    before: &Ledger,
    after: &Ledger,
    now: Time,
    mut starts: StartTimes,
) -> (Vec<Transition>, StartTimes) {
    let mut transitions = Vec::new();
    let (before_id, after_id) = (id(before), id(after));
    let (was, is) = (members(before), members(after));
    for (uid, member) in &is {
        if was.get(uid).map(|member| member.step) != Some(member.step) {
            transitions.push(Transition::Step {
                restart: after_id.to_owned(),
                node: member.node.clone(),
                step: step_name(member.step),
                stop: member.stop_sequence,
                start: member.start_sequence,
            });
        }
    }
    let strategy = before.restart.as_ref().map_or("", |restart| restart.request.strategy.as_str());
    for (uid, member) in was.iter().filter(|(_, member)| member.is_under_way()) {
        // The end of the last member is often the end of the restart.
        let is_over = before_id != after_id
            || is.get(uid).is_none_or(|member| member.step == MemberStep::Finished);
        if is_over && let Some(started) = starts.0.remove(*uid) {
            transitions.push(Transition::Finished {
                restart: before_id.to_owned(),
                node: member.node.clone(),
                strategy,
                seconds: seconds(member.since, now),
                start: seconds(started, now),
            });
        }
    }
    let ended = after.history.iter().filter(|entry| !before.history.contains(entry));
    transitions.extend(ended.cloned().map(Transition::Ended));
    (transitions, starts)
}

fn id(ledger: &Ledger) -> &str {
    ledger.restart.as_ref().map_or("", |restart| restart.request.id.as_str())
}

fn members(ledger: &Ledger) -> BTreeMap<&str, &Member> {
    ledger.members().map(|member| (member.pod_uid.as_str(), member)).collect()
}

/// Seconds from one time to another; more than fifty days count as fifty days.
fn seconds(from: Time, to: Time) -> f64 {
    f64::from(u32::try_from(to.since(from)).unwrap_or(u32::MAX)) / 1000.0
}

const fn step_name(step: MemberStep) -> &'static str {
    match step {
        MemberStep::Scheduled => "scheduled",
        MemberStep::Restarting => "restarting",
        MemberStep::GivingBack => "giving-back",
        MemberStep::Aborting => "aborting",
        MemberStep::Finished => "finished",
    }
}

#[cfg(test)]
mod tests;
