//! Describes what a ledger write changes, for the pages.

use crate::{Ledger, Member, MemberStep, Restart};

pub(crate) fn describe(old: &Ledger, new: &Ledger) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in new.history.iter().filter(|entry| !old.history.contains(entry)) {
        let why =
            if entry.reason.is_empty() { String::new() } else { format!(": {}", entry.reason) };
        lines.push(format!(
            "{} is over: {} after {} s, {} nodes{why}",
            entry.id,
            entry.outcome.as_str(),
            entry.seconds,
            entry.nodes
        ));
    }
    match (&old.restart, &new.restart) {
        (Some(before), Some(after)) if before.request.id == after.request.id => {
            restart(before, after, &mut lines);
        }
        (_, after) => {
            if let Some(begun) = after {
                let members: Vec<&str> =
                    begun.members.iter().map(|member| member.node.as_str()).collect();
                lines.push(format!(
                    "{} begins: {}, {}",
                    begun.request.id,
                    begun.request.strategy.as_str(),
                    members.join(" ")
                ));
            }
        }
    }
    if old.queued != new.queued {
        lines.push(match &new.queued {
            Some(queued) => format!("{} is queued", queued.id),
            None => "nothing is queued any more".into(),
        });
    }
    if old.kept_phase != new.kept_phase {
        lines.push(match &new.kept_phase {
            Some(phase) => format!("the phase {phase} is not carried out again"),
            None => "no phase is kept any more".into(),
        });
    }
    for (object, phase) in &new.operator_phases {
        if old.operator_phases.get(object) != Some(phase) {
            let phase = if phase.is_empty() { "no phase" } else { phase };
            lines.push(format!("{object} has {phase}"));
        }
    }
    if old.still_shown_since != new.still_shown_since {
        lines.push("pods still show an old phase".into());
    }
    debts(old, new, &mut lines);
    for entry in new.kept_stopped.iter().filter(|entry| !old.kept_stopped.contains(entry)) {
        let what = if entry.releasing { "to be started again" } else { "to be kept stopped" };
        lines.push(format!("{} is {what} (sequence {})", entry.node, entry.sequence));
    }
    for entry in &old.kept_stopped {
        if !new.kept_stopped.iter().any(|other| other.pod_uid == entry.pod_uid) {
            lines.push(format!("{} is not kept stopped any more", entry.node));
        }
    }
    if lines.is_empty() {
        lines.push("remembers what was asked, or whose cluster it is".into());
    }
    lines
}

/// Describes the whole ledger.
pub(crate) fn describe_whole(ledger: &Ledger) -> Vec<String> {
    let empty = Ledger { history: ledger.history.clone(), ..Ledger::default() };
    let mut lines = describe(&empty, ledger);
    for member in ledger.restart.iter().flat_map(|restart| &restart.members) {
        let line = changed(Some(&Member::default()), member);
        lines.extend(line);
    }
    lines
}

fn restart(old: &Restart, new: &Restart, lines: &mut Vec<String>) {
    let id = &new.request.id;
    if old.direction != new.direction {
        lines.push(format!("{id} goes {:?}", new.direction).to_lowercase());
    }
    if old.stuck_since != new.stuck_since {
        lines.push(match new.stuck_since {
            Some(_) => format!("{id} is stuck"),
            None => format!("{id} is not stuck any more"),
        });
    }
    if old.once.allocation != new.once.allocation {
        lines.push(format!("{id} has allocation tightened"));
    }
    if old.once.flush != new.once.flush {
        lines.push(format!("{id} has flushed"));
    }
    if old.frozen != new.frozen {
        lines.push(format!("{id} has its checksums frozen"));
    }
    if let (None, Some(ending)) = (&old.ending, &new.ending) {
        lines.push(format!(
            "{id} stops no more nodes, will be {}: {}",
            ending.outcome.as_str(),
            ending.reason
        ));
    }
    for member in &new.members {
        let before = old.members.iter().find(|other| other.pod_uid == member.pod_uid);
        if let Some(line) = changed(before, member) {
            lines.push(line);
        }
    }
    for member in &old.members {
        if !new.members.iter().any(|other| other.pod_uid == member.pod_uid) {
            lines.push(format!("{} is no member any more", member.node));
        }
    }
}

fn changed(before: Option<&Member>, now: &Member) -> Option<String> {
    let node = &now.node;
    let Some(before) = before else {
        let turn = match now.step {
            MemberStep::Restarting => {
                format!(", has its turn: stop {}, start {}", now.stop_sequence, now.start_sequence)
            }
            MemberStep::Scheduled
            | MemberStep::GivingBack
            | MemberStep::Aborting
            | MemberStep::Finished => String::new(),
        };
        return Some(format!("{node} is a member ({}){turn}", now.pod_uid));
    };
    if before == now {
        return None;
    }
    if before.step == now.step && before.absent_since.is_some() != now.absent_since.is_some() {
        return Some(match now.absent_since {
            Some(_) => format!("{node} is missed: its pod is not listed"),
            None => format!("{node} is listed again"),
        });
    }
    if before.step == now.step && before.silent_since.is_some() != now.silent_since.is_some() {
        return Some(match now.silent_since {
            Some(_) => format!("{node} is missed: its manager does not answer"),
            None => format!("{node} answers again"),
        });
    }
    if before.step == now.step
        && let (Some(before), Some(now)) = (&before.update, &now.update)
    {
        match (before.hindered_since, now.hindered_since) {
            (None, Some(_)) => return Some(format!("{node} is hindered by what may pass")),
            (Some(_), None) => return Some(format!("{node} is not hindered any more")),
            _ => {}
        }
        if before.given_up != now.given_up {
            return Some(format!("{node} has an image that is given up: {:?}", now.given_up));
        }
    }
    let on = now.expected.as_deref().unwrap_or("what is mounted");
    Some(match now.step {
        MemberStep::Scheduled => format!("{node} waits for its turn"),
        MemberStep::GivingBack => format!("{node} gives its slot back"),
        MemberStep::Restarting if before.step == MemberStep::GivingBack => {
            format!("{node} keeps its slot: its stop was taken")
        }
        MemberStep::Restarting
            if before.step == MemberStep::Restarting
                && before.start_sequence != now.start_sequence =>
        {
            format!("{node} is started once more: start {}", now.start_sequence)
        }
        MemberStep::Restarting
            if before.step == MemberStep::Restarting && before.expected == now.expected =>
        {
            return None;
        }
        MemberStep::Restarting if before.step == MemberStep::Restarting => {
            format!("{node} is to run {on}")
        }
        MemberStep::Restarting => {
            format!(
                "{node} has its turn: stop {}, start {} on {on}",
                now.stop_sequence, now.start_sequence
            )
        }
        MemberStep::Aborting => {
            let back = now.compensation.as_ref();
            let how = back.map(|back| {
                let stop =
                    back.stop_sequence.map(|stop| format!("stop {stop}, ")).unwrap_or_default();
                format!(": {stop}start {} on {}", back.start_sequence, back.config.as_str())
            });
            format!("{node} is on the way back{}", how.unwrap_or_default())
        }
        MemberStep::Finished => match &now.ending {
            None => format!("{node} is done"),
            Some(ending) if ending.reason.is_empty() => {
                format!("{node} is {}", ending.outcome.as_str())
            }
            Some(ending) => format!("{node} is {}: {}", ending.outcome.as_str(), ending.reason),
        },
    })
}

fn debts(old: &Ledger, new: &Ledger, lines: &mut Vec<String>) {
    for debt in &new.debts.start {
        let mut before = old.debts.start.iter();
        let before =
            before.find(|one| one.pod_uid == debt.pod_uid && one.sequence == debt.sequence);
        if let Some(before) = before
            && before.absent_since.is_some() != debt.absent_since.is_some()
        {
            lines.push(match debt.absent_since {
                Some(_) => format!("{}, which is owed a start, is missed", debt.node),
                None => format!("{}, which is owed a start, is listed again", debt.node),
            });
        } else if !old.debts.start.contains(debt) {
            lines.push(format!(
                "owes {} start {} on {}",
                debt.node,
                debt.sequence,
                debt.config.as_str()
            ));
        }
    }
    for debt in &old.debts.start {
        if !new.debts.start.iter().any(|other| other.pod_uid == debt.pod_uid) {
            lines.push(format!("owes {} no start any more", debt.node));
        }
    }
    match (&old.debts.allocation, &new.debts.allocation) {
        (None, Some(debt)) => lines.push(format!("owes allocation, for {}", debt.restart)),
        (Some(debt), None) => {
            lines.push(format!("owes no allocation any more, for {}", debt.restart))
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
    for debt in &new.debts.records {
        if !old.debts.records.contains(debt) {
            lines.push(format!("owes the end of {}'s record", debt.node));
        }
    }
    for debt in &old.debts.records {
        if !new.debts.records.contains(debt) {
            lines.push(format!("owes nothing for {}'s record any more", debt.node));
        }
    }
    match (&old.debts.exclusion, &new.debts.exclusion) {
        (None, Some(debt)) => {
            lines.push(format!("owes {} its vote, for {}", debt.node, debt.restart))
        }
        (Some(debt), None) => lines.push(format!("owes {} no vote any more", debt.node)),
        (None, None) | (Some(_), Some(_)) => {}
    }
}
