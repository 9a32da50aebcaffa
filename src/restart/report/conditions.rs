//! The conditions in the status.

use super::nodes::DownNodes;
use super::{Condition, Counts, nodes, summary};
use crate::{
    Code, Color, Disabled, Ledger, Outcome, Policy, Predicate, Snapshot, Strategy, Time, Waiting,
    debts_due,
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
        Some(waiting) => {
            value(Status::Yes, waiting.code.as_str(), summary::blocker_message(waiting))
        }
        None => value(Status::No, "NothingBlocks", ""),
    };
    let ledger = &snapshot.ledger;
    let degraded = match blocker.filter(|waiting| waiting.code == Code::Stranded) {
        // The restart can go neither forward nor back: a person must act.
        Some(waiting) => value(Status::Yes, "Stranded", &*waiting.message),
        None => degraded(ledger, nodes::summary(down)),
    };
    let for_a_person = if blocker.is_some_and(|waiting| waiting.code.needs_a_person()) {
        Some(blocked.clone())
    } else {
        // Not what is owed besides: nobody has to do that.
        let nodes = nodes::summary(down).filter(|_| nodes::wait_for_a_person(down));
        nodes.map(|nodes| value(Status::Yes, "NodesDown", nodes))
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
    all(values, ledger, for_a_person, snapshot.now)
}

/// The conditions of a cluster whose spec is not used.
pub(super) fn refused(ledger: &Ledger, reason: &str, message: String, now: Time) -> Vec<Condition> {
    let available = value(Status::Unknown, reason, "the cluster is not read while this blocks");
    let blocked = value(Status::Yes, reason, message);
    let disabled = value(Status::Unknown, reason, "unknown while this blocks");
    let for_a_person = Some(blocked.clone());
    let values = [available, in_progress(ledger), blocked, degraded(ledger, None), disabled];
    all(values, ledger, for_a_person, now)
}

/// Types of the conditions, in the order of the status.
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

/// The given values, and before them the three that every tool understands (kstatus). `for_a_person` is
/// the value that needs an action by a person.
fn all(
    values: [Value; 5],
    ledger: &Ledger,
    for_a_person: Option<Value>,
    now: Time,
) -> Vec<Condition> {
    let standard = standard(&values, ledger, for_a_person.as_ref());
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

/// `Ready`: nothing is under way, nothing is owed, nothing blocks, and the cluster is available. While
/// that is not so, either `Reconciling` is True, or `Stalled`: then a person has to do something.
fn standard(values: &[Value; 5], ledger: &Ledger, for_a_person: Option<&Value>) -> [Value; 3] {
    let [available, in_progress, blocked, degraded, _] = values;
    let is_yes = |value: &&Value| matches!(value.0, Status::Yes);
    let of = |value: &Value, status: Status| (status, value.1.clone(), value.2.clone());
    if let Some(wrong) = for_a_person {
        return [of(wrong, Status::No), value(Status::No, "Stalled", ""), of(wrong, Status::Yes)];
    }
    let wrong = [blocked, degraded, in_progress].into_iter().find(is_yes);
    let queued = ledger.queued.as_ref();
    let queued = queued.map(|one| value(Status::Yes, "Queued", format!("{} waits", one.id)));
    let unavailable = Some(available).filter(|available| !is_yes(available));
    match wrong.or(queued.as_ref()).or(unavailable) {
        Some(wrong) => {
            let no = value(Status::No, "Reconciling", "");
            [of(wrong, Status::No), of(wrong, Status::Yes), no]
        }
        None => [ready(ledger), value(Status::No, "Ready", ""), value(Status::No, "Ready", "")],
    }
}

/// The value of `Ready`. It stays True after a restart that did not do what was requested: nobody has to
/// do anything, and nothing is going to happen. The reason and the message say how that restart ended.
fn ready(ledger: &Ledger) -> Value {
    let reason = match ledger.history.last().map(|entry| entry.outcome) {
        None | Some(Outcome::Done) => {
            return value(Status::Yes, "Ready", "all requests are done, and there are no debts");
        }
        Some(Outcome::Aborted) => "RestartAborted",
        Some(Outcome::RolledBack) => "RestartRolledBack",
        Some(Outcome::Interfered) => "RestartInterfered",
        Some(Outcome::Superseded) => "RestartSuperseded",
    };
    value(Status::Yes, reason, format!("{}; there are no debts", last_restart(ledger)))
}

/// How the last restart ended, and why; empty if there was none.
fn last_restart(ledger: &Ledger) -> String {
    let Some(entry) = ledger.history.last() else { return String::new() };
    let ended = format!("the last restart, {}, ended as {}", entry.id, entry.outcome.as_str());
    match entry.reason.as_str() {
        "" => ended,
        reason => format!("{ended}: {reason}"),
    }
}

/// The value of `Available`, by the engine's health if it is known, else by the readiness of the pods.
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
    let missing = u32::try_from(snapshot.missing.len()).unwrap_or(u32::MAX);
    let wanted = counts.pods.saturating_add(missing);
    let message = format!("{} of {wanted} pods are ready", counts.ready);
    match counts.ready {
        _ if wanted == 0 => value(Status::Unknown, "NoPods", "the selector matches no pods"),
        0 => value(Status::No, "NoPodReady", message),
        ready if ready == wanted => value(Status::Yes, "PodsReady", message),
        _ => value(Status::Yes, "SomePodsReady", message),
    }
}

fn in_progress(ledger: &Ledger) -> Value {
    let Some(restart) = &ledger.restart else {
        return value(Status::No, "NoRestart", last_restart(ledger));
    };
    let reason = match restart.request.strategy {
        Strategy::Immediate => "Immediate",
        Strategy::Rolling => "Rolling",
        Strategy::Coordinated => "Coordinated",
    };
    let done = restart.nodes_finished();
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

/// The value of `Degraded`, by the debts, and by the nodes that are down.
fn degraded(ledger: &Ledger, down: Option<String>) -> Value {
    let mut due = debts_due(ledger);
    let reason = match (due.is_empty(), &down) {
        (false, _) => "Debts",
        (true, Some(_)) => "NodesDown",
        (true, None) => return value(Status::No, "NothingOwed", ""),
    };
    due.extend(down);
    value(Status::Yes, reason, due.join("; "))
}

/// The value of `PredicatesDisabled`, which reminds people of it.
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
