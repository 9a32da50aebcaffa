//! Changes that the reconciler has yet to undo.

use maud::{Markup, html};

use super::text::{code, prose};
use crate::cluster_view::ClusterView;
use stayput_restart::debts_due;

pub(super) fn debts(view: &ClusterView) -> Markup {
    let due = view.status.as_ref().map(|status| debts_due(&status.ledger)).unwrap_or_default();
    html! {
        @if due.is_empty() { p.muted { "Nothing has to be undone." } }
        @else {
            p { "Not undone yet, and tried again until it is: " (code("debts")) }
            ul.debts { @for debt in &due { li.text { (prose(debt)) } } }
        }
    }
}
