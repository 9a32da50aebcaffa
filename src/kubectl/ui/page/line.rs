//! Observed changes, and the freshness of the page.

use maud::{Markup, html};

use super::text::{class, prose, sign, time};
use crate::page::Tone;
use crate::ui::page_model::{PageModel, Source};

pub(super) fn lines(model: &PageModel) -> Markup {
    html! {
        @if model.lines.is_empty() { p.muted { "Nothing has changed since this page was opened." } }
        ol.lines reversed {
            @for line in model.lines.iter().rev() {
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

pub(super) fn fresh(model: &PageModel) -> Markup {
    let at = time(model.fresh);
    let (tone, text) = match &model.source {
        Source::Live => (Tone::Good, html! { "Live, read at " (at) "." }),
        Source::Deleted => (
            Tone::Bad,
            html! { "This SearchCluster is deleted. This page shows its last known state." },
        ),
        Source::Lost(why) => {
            (Tone::Bad, html! { "Not live. Last read at " (at) ". " span.text { (why) } })
        }
    };
    html! { p class={ "fresh " (class(tone)) } {
        span.sign aria-hidden="true" { (sign(tone)) } (text)
    } }
}
