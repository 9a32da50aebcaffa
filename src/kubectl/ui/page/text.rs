//! Texts of the cluster as HTML. Any markup in them stays text: maud escapes it.

use maud::{Markup, html};

use crate::format::time_to_second;
use crate::page::Tone;
use crate::runbook;
use stayput_restart::Time;

/// A message; text between backquotes is a command or a name.
pub(super) fn prose(text: &str) -> Markup {
    let is_paired = text.matches('`').count().is_multiple_of(2);
    html! {
        @if is_paired {
            @for (part, is_code) in text.split('`').zip([false, true].into_iter().cycle()) {
                @if is_code { code { (part) } } @else { (part) }
            }
        } @else { (text) }
    }
}

/// A time; the script adds how long ago it is.
pub(super) fn time(time: Time) -> Markup {
    let text = time_to_second(time);
    let shown = text.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(text) { (shown) } }
}

/// A code, with a link to its page of the runbook if it has one.
pub(super) fn code(code: &str) -> Markup {
    html! {
        @if runbook::about(code).is_some() {
            a href={ "/runbook/" (code) } { code { (code) } }
        } @else { code { (code) } }
    }
}

/// CSS class for the tone of a value, which decides its color. The words and signs say the same.
pub(super) const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "neutral",
        Tone::Good => "good",
        Tone::Warning => "warning",
        Tone::Bad => "bad",
    }
}

pub(super) const fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "·",
        Tone::Good => "✓",
        Tone::Warning => "!",
        Tone::Bad => "✕",
    }
}

/// A word with its color and sign.
pub(super) fn badge(tone: Tone, word: &str) -> Markup {
    html! {
        span class={ "badge " (class(tone)) } {
            span.sign aria-hidden="true" { (sign(tone)) } (word)
        }
    }
}
