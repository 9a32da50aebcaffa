//! The restarts that have ended, as marks on a line of time and as a table.

use maud::{Markup, html};

use super::text::{badge, class, prose, time};
use crate::cluster_view::ClusterView;
use crate::format::rounded_duration;
use crate::pages::{nodes_by_step, reason_in_history, tone_of_outcome};
use stayput_restart::{HistoryEntry, Outcome, Time};

/// Width of the line, and of the narrowest mark.
const WIDTH: u64 = 600;
const MARK: u64 = 6;

pub(super) fn history(view: &ClusterView) -> Markup {
    let all = view.history();
    html! {
        @if all.is_empty() { p.muted { "No restart has ended yet." } }
        @else {
            (timeline(all))
            table {
                thead { tr {
                    @for name in ["Started", "Took", "Strategy", "Nodes", "Outcome"] { th scope="col" { (name) } }
                } }
                tbody { @for entry in all.iter().rev() { (row(entry)) } }
            }
        }
    }
}

fn row(entry: &HistoryEntry) -> Markup {
    html! {
        tr {
            td { (time(entry.started)) }
            td { (rounded_duration(entry.seconds)) }
            td { (entry.strategy.as_str()) }
            td { (nodes_by_step(entry)) }
            td.text {
                (badge(tone_of_outcome(entry.outcome), entry.outcome.as_str()))
                @let reason = reason_in_history(entry);
                @if !reason.is_empty() { br; (prose(&reason)) }
                br; span.muted { (entry.id) }
            }
        }
    }
}

/// When each restart was, and how long it took. A restart that is not `done` is lower, so that color is
/// not needed to see it.
fn timeline(all: &[HistoryEntry]) -> Markup {
    let begin = all.iter().map(|entry| entry.started).min().unwrap_or_default();
    let end = all.iter().map(ended).max().unwrap_or_default();
    let length = end.since(begin).max(1);
    let at = |time: Time| {
        let share = u128::from(time.since(begin)) * u128::from(WIDTH - MARK) / u128::from(length);
        u64::try_from(share).unwrap_or(WIDTH)
    };
    let done = all.iter().filter(|entry| entry.outcome == Outcome::Done).count();
    let count = all.len();
    let words = format!("{count} restarts, {done} of them done; the table below has the same");
    html! {
        svg.timeline viewBox={ "0 0 " (WIDTH) " 34" } role="img" aria-label=(words) {
            line x1="0" y1="17" x2=(WIDTH) y2="17" class="axis" {}
            @for entry in all {
                @let x = at(entry.started);
                @let width = at(ended(entry)).saturating_sub(x).max(MARK);
                @let y = if entry.outcome == Outcome::Done { 4 } else { 20 };
                rect x=(x) y=(y) width=(width) height="10" rx="2"
                    class=(class(tone_of_outcome(entry.outcome))) {}
            }
        }
    }
}

fn ended(entry: &HistoryEntry) -> Time {
    entry.started.plus(entry.seconds.saturating_mul(1000))
}
