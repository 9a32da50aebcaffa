//! Variables of engines in a snapshot: their values are for the reconciler alone.

use stayput_api::checksum::ContentDigest;

use super::Snapshot;
use crate::annotation::ENVIRONMENT;
use crate::{Change, MemberUpdate};

/// The name that a manager has for the variables in an annotation.
pub(crate) fn digest(annotation: Option<&String>) -> String {
    ContentDigest::of(annotation.map_or("", String::as_str).as_bytes()).to_string()
}

impl Snapshot {
    /// The snapshot with digests in the place of values. A plan for it waits for the same.
    pub(super) fn without_values(mut self) -> Self {
        for pod in &mut self.pods {
            hide(pod.annotations.get_mut(ENVIRONMENT));
            if let Ok(Some(update)) = &mut pod.update {
                hide_change(update.patch.variables.as_mut());
            }
            if let Ok(manager) = &mut pod.manager {
                let run = manager.run.as_mut().and_then(|run| run.variables.as_mut());
                // The name of no variables stays.
                let named = [manager.variables.as_mut(), run].into_iter().flatten();
                named.filter(|name| **name != digest(None)).for_each(|name| hide(Some(name)));
            }
        }
        let ledger = &mut self.ledger;
        let members = ledger.restart.iter_mut().flat_map(|restart| &mut restart.members);
        let fixed = members.filter_map(|member| member.update.as_deref_mut());
        let owed = ledger.debts.start.iter_mut().filter_map(|debt| debt.update.as_deref_mut());
        let hide_fixed =
            |fixed: &mut MemberUpdate| hide_change(fixed.update.patch.variables.as_mut());
        fixed.chain(owed).for_each(hide_fixed);
        self
    }
}

fn hide_change(change: Option<&mut Change>) {
    if let Some(Change { seen, wanted }) = change {
        hide(seen.as_mut());
        hide(wanted.as_mut());
    }
}

fn hide(text: Option<&mut String>) {
    if let Some(text) = text {
        *text = digest(Some(text));
    }
}
