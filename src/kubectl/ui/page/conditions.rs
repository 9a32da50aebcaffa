//! The conditions, as `kubectl wait` reads them.

use maud::{Markup, html};

use super::text::{badge, prose, time};
use crate::cluster_view::ClusterView;
use crate::page::Tone;
use stayput_restart::Condition;

pub(super) fn conditions(view: &ClusterView) -> Markup {
    let all: Vec<&Condition> =
        view.status.iter().flat_map(|status| &status.report.conditions).collect();
    html! {
        @if all.is_empty() { p.muted { "There are none yet." } }
        @else {
            table {
                thead { tr {
                    @for name in ["Condition", "Status", "Reason", "Since"] { th scope="col" { (name) } }
                } }
                tbody {
                    @for one in all {
                        tr {
                            th scope="row" { (one.kind) }
                            td { (badge(tone(one), &one.status)) }
                            td.text {
                                (one.reason)
                                @if !one.message.is_empty() { br; span.muted { (prose(&one.message)) } }
                            }
                            td { (time(one.last_transition_time)) }
                        }
                    }
                }
            }
        }
    }
}

/// Tone of a condition: for some it is good to be True, for some it is not.
fn tone(condition: &Condition) -> Tone {
    let is_true = match condition.status.as_str() {
        "True" => true,
        "False" => false,
        _ => return Tone::Warning,
    };
    match condition.kind.as_str() {
        "Ready" | "Available" | "CertificatesValid" if is_true => Tone::Good,
        "Available" | "CertificatesValid" => Tone::Bad,
        "Ready" => Tone::Warning,
        "Stalled" | "Blocked" | "Degraded" if is_true => Tone::Bad,
        "PredicatesDisabled" if is_true => Tone::Warning,
        _ => Tone::Neutral,
    }
}
