//! Observed changes, and the freshness of the page.

use maud::{Markup, html};

use super::text::{class, prose, sign, time};
use crate::kubectl::page::Tone;
use crate::kubectl::ui::moment::{Moment, Source};

pub(super) fn lines(moment: &Moment) -> Markup {
    html! {
        @if moment.lines.is_empty() { p.muted { "Nothing has changed since this page was opened." } }
        ol.lines reversed {
            @for line in moment.lines.iter().rev() {
                li class=(class(line.tone)) {
                    (time(line.time)) " "
                    span.sign aria-hidden="true" { (sign(line.tone)) }
                    @if let Some(node) = &line.node { strong { (node) } " " }
                    span.text { (prose(&line.message)) }
                }
            }
        }
    }
}

pub(super) fn fresh(moment: &Moment) -> Markup {
    let at = time(moment.fresh);
    let (tone, text) = match &moment.source {
        Source::Live => (Tone::Good, html! { "Live, read at " (at) "." }),
        Source::Deleted => (
            Tone::Bad,
            html! { "This SearchCluster is deleted. What is shown is what was last known of it." },
        ),
        Source::Lost(why) => (
            Tone::Bad,
            html! { "Not live. What is shown was read at " (at) ". " span.text { (why) } },
        ),
    };
    html! { p class={ "fresh " (class(tone)) } {
        span.sign aria-hidden="true" { (sign(tone)) } (text)
    } }
}
