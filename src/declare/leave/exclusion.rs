//! The exclusion from allocation: our names are added to those of a person, and taken out of the value
//! that is there then.

use std::collections::BTreeSet;

use super::{Action, ExcludedBefore, Leaving, Seen};

/// The names in the setting.
fn names(value: Option<&str>) -> Vec<&str> {
    let names = value.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// The value with `add` and without `remove`. Names that a person had there before stay. If only those
/// are left, the value is written as it was.
pub(super) fn merged(
    value: Option<&str>,
    before: &ExcludedBefore,
    add: &BTreeSet<String>,
    remove: &BTreeSet<String>,
) -> Option<String> {
    let (now, of_person) = (names(value), names(before.value.as_deref()));
    let mut wanted = now.clone();
    wanted.retain(|name| !remove.contains(*name) || of_person.contains(name));
    wanted.extend(add.iter().map(String::as_str).filter(|name| !now.contains(name)));
    if wanted == now {
        return value.map(str::to_owned);
    }
    if wanted == of_person {
        return before.value.clone();
    }
    (!wanted.is_empty()).then(|| wanted.join(","))
}

/// The next action so that exactly `keep` of our nodes are excluded, until they are and it is
/// written down.
pub(super) fn exclude(seen: &Seen, debts: &Leaving, keep: &BTreeSet<String>) -> Option<Action> {
    let there = &seen.excluded;
    let wins = there.transient.is_some();
    let mut written = debts.clone();
    written.nodes.extend(keep.iter().cloned());
    let add = |wins: bool| if wins { keep.clone() } else { BTreeSet::new() };
    let lacks = |value: Option<&str>| !keep.iter().all(|name| names(value).contains(&&**name));
    if wins && lacks(there.transient.as_deref()) {
        written.transient.get_or_insert(ExcludedBefore { value: there.transient.clone() });
    } else if !wins && lacks(there.persistent.as_deref()) {
        written.persistent.get_or_insert(ExcludedBefore { value: there.persistent.clone() });
    }
    if written != *debts {
        return Some(Action::Write(written));
    }
    let remove: BTreeSet<String> = debts.nodes.difference(keep).cloned().collect();
    let level = |value: &Option<String>, before: &Option<ExcludedBefore>, wins: bool| {
        let before = before.as_ref()?;
        let wanted = merged(value.as_deref(), before, &add(wins), &remove);
        (wanted != *value).then_some(wanted)
    };
    let persistent = level(&there.persistent, &debts.persistent, !wins);
    let transient = level(&there.transient, &debts.transient, wins);
    if persistent.is_some() || transient.is_some() {
        return Some(Action::Exclude { persistent, transient });
    }
    if remove.is_empty() {
        return None;
    }
    written.nodes.clone_from(keep);
    if keep.is_empty() {
        (written.persistent, written.transient) = (None, None);
    }
    Some(Action::Write(written))
}
