//! The conditions in the status.

use super::down::DownNodes;
use super::{Condition, Counts, debts, down};
use crate::{
    Code, Color, Disabled, Ledger, Policy, Predicate, Snapshot, Step, Strategy, Time, Waiting,
};

#[derive(Clone, Copy)]
enum Status {
    Yes,
    No,
    Unknown,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "True",
            Self::No => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Status, reason and message.
type Value = (Status, String, String);

fn value(status: Status, reason: &str, message: impl Into<String>) -> Value {
    (status, reason.to_owned(), message.into())
}

pub(super) fn conditions(
    snapshot: &Snapshot,
    policy: &Policy,
    blocker: Option<&Waiting>,
    counts: &Counts,
    down: &DownNodes<'_>,
) -> Vec<Condition> {
    let blocked = match blocker {
        Some(waiting) => value(Status::Yes, waiting.code.as_str(), &*waiting.message),
        None => value(Status::No, "NothingBlocks", ""),
    };
    let ledger = &snapshot.ledger;
    let degraded = match blocker.filter(|waiting| waiting.code == Code::Stranded) {
        // The restart can go neither forward nor back: a person must act.
        Some(waiting) => value(Status::Yes, "Stranded", &*waiting.message),
        None => degraded(ledger, down::summary(down)),
    };
    let values = [
        available(snapshot, counts),
        in_progress(ledger),
        blocked,
        degraded,
        disabled(
            &policy.disabled.clone().with_restart(ledger.restart.as_ref()),
            &snapshot.cluster.name,
        ),
    ];
    let needs_a_person = blocker.is_some_and(|waiting| waiting.code.needs_a_person());
    all(values, ledger, needs_a_person, snapshot.now)
}

/// The conditions of a cluster whose spec is not used.
pub(super) fn refused(ledger: &Ledger, reason: &str, message: String, now: Time) -> Vec<Condition> {
    let available = value(Status::Unknown, reason, "the cluster is not read while this blocks");
    let blocked = value(Status::Yes, reason, message);
    let disabled = value(Status::Unknown, reason, "unknown while this blocks");
    let values = [available, in_progress(ledger), blocked, degraded(ledger, None), disabled];
    all(values, ledger, true, now)
}

/// In the order of the status.
const KINDS: [&str; 8] = [
    "Ready",
    "Reconciling",
    "Stalled",
    "Available",
    "RestartInProgress",
    "Blocked",
    "Degraded",
    "PredicatesDisabled",
];

/// The values given, and before them the three that every tool understands (kstatus).
fn all(values: [Value; 5], ledger: &Ledger, needs_a_person: bool, now: Time) -> Vec<Condition> {
    let standard = standard(&values, ledger, needs_a_person);
    let condition = |(kind, (status, reason, message)): (&str, Value)| Condition {
        kind: kind.to_owned(),
        status: status.as_str().to_owned(),
        reason,
        message,
        observed_generation: None,
        last_transition_time: now,
    };
    KINDS.into_iter().zip(standard.into_iter().chain(values)).map(condition).collect()
}

/// `Ready`: what was requested is done, nothing is owed, nothing blocks, and the cluster is
/// available. While that is not so, either `Reconciling` is True, or `Stalled`: then a person has to
/// do something.
fn standard(values: &[Value; 5], ledger: &Ledger, needs_a_person: bool) -> [Value; 3] {
    let [available, in_progress, blocked, degraded, _] = values;
    let is_yes = |value: &&Value| matches!(value.0, Status::Yes);
    let wrong = [blocked, degraded, in_progress].into_iter().find(is_yes);
    let queued = ledger.queued.as_ref();
    let queued = queued.map(|one| value(Status::Yes, "Queued", format!("{} waits", one.id)));
    let unavailable = Some(available).filter(|available| !is_yes(available));
    let Some((_, reason, message)) = wrong.or(queued.as_ref()).or(unavailable) else {
        let no = || value(Status::No, "Ready", "");
        let ready = value(Status::Yes, "Ready", "what was requested is done, and nothing is owed");
        return [ready, no(), no()];
    };
    let of = |status: Status| value(status, reason, message);
    match needs_a_person {
        true => [of(Status::No), value(Status::No, "Stalled", ""), of(Status::Yes)],
        false => [of(Status::No), of(Status::Yes), value(Status::No, "Reconciling", "")],
    }
}

/// By the engine's health if it is known, else by the readiness of the pods.
fn available(snapshot: &Snapshot, counts: &Counts) -> Value {
    let health = snapshot.engine.as_ref().ok().and_then(|engine| engine.health.as_ref().ok());
    match health.map(|health| health.color) {
        Some(Color::Green) => {
            return value(Status::Yes, "Green", "every copy of every shard is assigned");
        }
        Some(Color::Yellow) => {
            return value(
                Status::Yes,
                "Yellow",
                "every primary is assigned, some replicas are not",
            );
        }
        Some(Color::Red) => return value(Status::No, "Red", "a primary shard is not assigned"),
        Some(Color::Unknown) | None => {}
    }
    let message = format!("{} of {} pods are ready", counts.ready, counts.pods);
    match counts.ready {
        _ if counts.pods == 0 => value(Status::Unknown, "NoPods", "the selector matches no pods"),
        0 => value(Status::No, "NoPodReady", message),
        ready if ready == counts.pods => value(Status::Yes, "PodsReady", message),
        _ => value(Status::Yes, "SomePodsReady", message),
    }
}

fn in_progress(ledger: &Ledger) -> Value {
    let Some(restart) = &ledger.restart else {
        let message = ledger.history.last().map_or_else(String::new, |entry| {
            format!("the last restart, {}, ended as {}", entry.id, entry.outcome.as_str())
        });
        return value(Status::No, "NoRestart", message);
    };
    let reason = match restart.request.strategy {
        Strategy::Immediate => "Immediate",
        Strategy::Rolling => "Rolling",
        Strategy::Coordinated => "Coordinated",
    };
    let done = restart.members.iter().filter(|member| member.step == Step::Finished).count();
    let mut message =
        format!("restart {}: {done} of {} nodes done", restart.request.id, restart.members.len());
    if let Some(ending) = &restart.ending {
        message = format!("{message}; it ends as {}", ending.outcome.as_str());
        if !ending.reason.is_empty() {
            message = format!("{message}: {}", ending.reason);
        }
    }
    value(Status::Yes, reason, message)
}

/// By what is owed, and by the nodes that are down.
fn degraded(ledger: &Ledger, down: Option<String>) -> Value {
    let mut due = debts::due(ledger);
    let reason = match (due.is_empty(), &down) {
        (false, _) => "Debts",
        (true, Some(_)) => "NodesDown",
        (true, None) => return value(Status::No, "NothingOwed", ""),
    };
    due.extend(down);
    value(Status::Yes, reason, due.join("; "))
}

/// Reminds people that predicates are disabled.
fn disabled(disabled: &Disabled, cluster: &str) -> Value {
    let names: Vec<&str> = disabled.iter().map(Predicate::name).collect();
    let unknown = disabled.unknown();
    let off = match names.len() {
        0 => {
            let Some(unknown) = unknown else { return value(Status::No, "NothingDisabled", "") };
            return value(Status::No, "UnknownNames", unknown);
        }
        1 => format!("{} is not evaluated", names[0]),
        all if all == Predicate::ALL.len() => "no predicate is evaluated".into(),
        _ => format!("{} are not evaluated", names.join(", ")),
    };
    let undo = disabled.undo(cluster).join(" and ");
    let mut message = format!("{off}; to enable again: {undo}");
    if let Some(unknown) = unknown {
        message = format!("{message}; also, {unknown}");
    }
    value(Status::Yes, "Disabled", message)
}
