//! `cluster.routing.allocation.exclude._name`: ours beside the names of other people.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::flow::leave::View;
use crate::{Action, ExcludedBefore};

impl View<'_, '_> {
    /// The next step so that exactly `keep` of our nodes are excluded, until they are and it is written down.
    pub(super) fn exclude(&self, keep: &BTreeSet<String>) -> Option<Changes> {
        let (there, debts) = (self.excluded, self.debts);
        let wins = there.transient.is_some();
        let mut written = debts.clone();
        written.nodes.extend(keep.iter().cloned());
        let (value, before) = if wins {
            (&there.transient, &mut written.transient)
        } else {
            (&there.persistent, &mut written.persistent)
        };
        if !keep.iter().all(|name| names(value.as_deref()).contains(&&**name)) {
            before.get_or_insert(ExcludedBefore { value: value.clone() });
        }
        if written != *debts {
            return Some(self.write(written));
        }
        let nothing = BTreeSet::new();
        let remove: BTreeSet<String> = debts.nodes.difference(keep).cloned().collect();
        let level = |value: &Option<String>, before: &Option<ExcludedBefore>, wins: bool| {
            let add = if wins { keep } else { &nothing };
            let wanted = merged(value.as_deref(), before.as_ref()?, add, &remove);
            (wanted != *value).then_some(wanted)
        };
        let persistent = level(&there.persistent, &debts.persistent, !wins);
        let transient = level(&there.transient, &debts.transient, wins);
        if persistent.is_some() || transient.is_some() {
            return Some(Changes::action(Action::ExcludeNames { persistent, transient }));
        }
        if remove.is_empty() {
            return None;
        }
        written.nodes.clone_from(keep);
        if keep.is_empty() {
            (written.persistent, written.transient) = (None, None);
        }
        Some(self.write(written))
    }
}

/// The names in the setting.
fn names(value: Option<&str>) -> Vec<&str> {
    let names = value.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// The value with `add` and without `remove`. Names that a person had there before stay. If only those
/// are left, the value is written as it was.
fn merged(
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
