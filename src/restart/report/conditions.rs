//! The conditions.

use super::{Condition, Counts, debts};
use crate::{
    Code, Color, Disabled, Ledger, Policy, Predicate, Snapshot, Step, Strategy, Time, Waiting,
};

/// Whether it is so.
#[derive(Clone, Copy)]
enum Holds {
    Yes,
    No,
    Unknown,
}

impl Holds {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "True",
            Self::No => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Whether it is so, the word and the sentence.
type Said = (Holds, String, String);

fn said(holds: Holds, reason: &str, message: impl Into<String>) -> Said {
    (holds, reason.to_owned(), message.into())
}

/// All five of them.
pub(super) fn conditions(
    snapshot: &Snapshot,
    policy: &Policy,
    blocker: Option<&Waiting>,
    counts: &Counts,
) -> Vec<Condition> {
    let blocked = match blocker {
        Some(waiting) => said(Holds::Yes, waiting.code.as_str(), &waiting.message),
        None => said(Holds::No, "NothingBlocks", ""),
    };
    let ledger = &snapshot.ledger;
    let degraded = match blocker.filter(|waiting| waiting.code == Code::Stranded) {
        // Neither forward nor back: nothing but a person helps.
        Some(waiting) => said(Holds::Yes, "Stranded", &waiting.message),
        None => degraded(ledger),
    };
    let said = [
        available(snapshot, counts),
        in_progress(ledger),
        blocked,
        degraded,
        disabled(&policy.disabled, &snapshot.cluster.name),
    ];
    all(said, snapshot.now)
}

/// All five of them, where the spec cannot be used.
pub(super) fn invalid(ledger: &Ledger, reason: &str, message: String, now: Time) -> Vec<Condition> {
    let available = said(Holds::Unknown, reason, "the cluster is not looked at with such a spec");
    let blocked = said(Holds::Yes, reason, message);
    let disabled = said(Holds::Unknown, reason, "the spec that would tell cannot be used");
    all([available, in_progress(ledger), blocked, degraded(ledger), disabled], now)
}

/// In this order.
const KINDS: [&str; 5] =
    ["Available", "RestartInProgress", "Blocked", "Degraded", "PredicatesDisabled"];

fn all(said: [Said; KINDS.len()], now: Time) -> Vec<Condition> {
    let of = |(kind, (holds, reason, message)): (&str, Said)| Condition {
        kind: kind.to_owned(),
        status: holds.as_str().to_owned(),
        reason,
        message,
        last_transition_time: now,
    };
    KINDS.into_iter().zip(said).map(of).collect()
}

/// By the engine's own word where it was asked, else by what the pods say.
fn available(snapshot: &Snapshot, counts: &Counts) -> Said {
    let health = snapshot.engine.as_ref().ok().and_then(|engine| engine.health.as_ref().ok());
    match health.map(|health| health.color) {
        Some(Color::Green) => {
            return said(Holds::Yes, "Green", "every copy of every shard is there");
        }
        Some(Color::Yellow) => {
            return said(Holds::Yes, "Yellow", "every primary is there, a replica is not");
        }
        Some(Color::Red) => return said(Holds::No, "Red", "a primary shard is not there"),
        Some(Color::Unknown) | None => {}
    }
    let message = format!("{} of {} pods are ready", counts.ready, counts.pods);
    match counts.ready {
        _ if counts.pods == 0 => said(Holds::Unknown, "NoPods", "the selector finds no pods"),
        0 => said(Holds::No, "NoPodReady", message),
        ready if ready == counts.pods => said(Holds::Yes, "PodsReady", message),
        _ => said(Holds::Yes, "SomePodsReady", message),
    }
}

fn in_progress(ledger: &Ledger) -> Said {
    let Some(restart) = &ledger.restart else {
        let message = ledger.history.last().map_or_else(String::new, |entry| {
            format!("the last one, {}, ended as {}", entry.id, entry.outcome.as_str())
        });
        return said(Holds::No, "NoRestart", message);
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
    said(Holds::Yes, reason, message)
}

fn degraded(ledger: &Ledger) -> Said {
    let due = debts::due(ledger);
    if due.is_empty() {
        said(Holds::No, "NothingOwed", "")
    } else {
        said(Holds::Yes, "Debts", due.join("; "))
    }
}

/// Rules that are off stay off until somebody remembers: this does.
fn disabled(disabled: &Disabled, cluster: &str) -> Said {
    let names: Vec<&str> = disabled.iter().map(Predicate::name).collect();
    let unknown = disabled.unknown();
    let off = match names.len() {
        0 => {
            let Some(unknown) = unknown else { return said(Holds::No, "NothingDisabled", "") };
            return said(Holds::No, "UnknownNames", unknown);
        }
        1 => format!("{} is not evaluated", names[0]),
        all if all == Predicate::ALL.len() => "none of the ten predicates is evaluated".into(),
        _ => format!("{} are not evaluated", names.join(", ")),
    };
    let undo = disabled.undo(cluster).join(" and ");
    let mut message = format!("{off}; when it has served its purpose: {undo}");
    if let Some(unknown) = unknown {
        message = format!("{message}; besides, {unknown}");
    }
    said(Holds::Yes, "Disabled", message)
}
