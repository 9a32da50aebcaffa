//! Renders HTML for `ui`: whole documents, and the regions of the page of a cluster, which are replaced one
//! by one. Everything works without scripts; the script only replaces the parts that change. Pure.

mod cluster;
mod picture;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use stayput_restart::Time;

use crate::format::time_to_second;
use crate::html::picture::Picture;
use crate::runbook;
use crate::view::live::PageModel;
use crate::view::{ClusterView, Tone, tone_of_phase};

/// A part of the page, by the id of its element.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    id: &'static str,
    html: String,
}

/// The page of a cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Page {
    regions: Vec<Region>,
    picture: PictureRegion,
}

/// The picture changes node by node, unless nodes come or go: there may be a thousand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PictureRegion {
    /// The picture without the contents of the nodes.
    model: String,
    whole: String,
    /// Contents of the nodes, by the id of their element.
    tiles: BTreeMap<String, String>,
}

/// The new content of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Change<'a> {
    pub(crate) id: &'a str,
    pub(crate) html: &'a str,
}

/// The id of the element with the picture.
const PICTURE: &str = "picture";

impl Page {
    pub(crate) fn new(model: &PageModel) -> Self {
        let picture = Picture::new(model);
        let regions = [
            ("title", cluster::title(model)),
            ("fresh", cluster::fresh(model)),
            ("news", cluster::news(model)),
            ("summary", cluster::summary(model)),
            ("legend", picture.legend()),
            ("nodes", cluster::nodes(model)),
            ("lines", cluster::lines(model)),
            ("debts", cluster::debts(&model.view)),
            ("conditions", cluster::conditions(&model.view)),
            ("history", cluster::history(&model.view)),
        ];
        let region = |(id, html): (_, maud::Markup)| Region { id, html: html.into_string() };
        Self {
            regions: regions.into_iter().map(region).collect(),
            picture: PictureRegion {
                model: picture.html(false).into_string(),
                whole: picture.html(true).into_string(),
                tiles: picture.tiles(),
            },
        }
    }

    /// Content of the element with this id.
    fn html(&self, id: &str) -> &str {
        let region = self.regions.iter().find(|region| region.id == id);
        region.map_or(self.picture.whole.as_str(), |region| &region.html)
    }
}

/// The changes since the page before, or everything without one.
pub(crate) fn changes<'a>(before: Option<&Page>, now: &'a Page) -> Vec<Change<'a>> {
    let html_before = |id| before.map(|page: &Page| page.html(id));
    let regions = now.regions.iter().filter(|region| html_before(region.id) != Some(&region.html));
    let regions = regions.map(|region| Change { id: region.id, html: &region.html });
    let mut changed: Vec<Change<'_>> = regions.collect();
    match before.map(|page| &page.picture) {
        Some(before) if before.model == now.picture.model => {
            let tiles = now.picture.tiles.iter();
            let tiles = tiles.filter(|(id, html)| before.tiles.get(*id) != Some(html));
            changed.extend(tiles.map(|(id, html)| Change { id, html }));
        }
        Some(_) | None => changed.push(Change { id: PICTURE, html: &now.picture.whole }),
    }
    changed
}

pub(crate) const STYLE: &str = include_str!("html/style.css");
pub(crate) const SCRIPT: &str = include_str!("html/live.js");

/// The page of a cluster.
pub(crate) fn cluster(page: &Page, name: &str, version: u64) -> String {
    let part = |id: &str| PreEscaped(page.html(id).to_owned());
    let section = |id: &str, title: &str, has_table: bool| {
        html! {
            section aria-labelledby={ (id) "-title" } {
                h2 id={ (id) "-title" } { (title) }
                // On a narrow screen a table is wider than its section: the keyboard has to reach what scrolls.
                @if has_table {
                    div id=(id) tabindex="0" role="group" aria-labelledby={ (id) "-title" } { (part(id)) }
                } @else { div id=(id) { (part(id)) } }
            }
        }
    };
    let events = format!("/clusters/{name}/events?since={version}");
    let body = html! {
        body data-events=(events) {
            (skip())
            header {
                nav aria-label="Pages" { a href="/clusters" { "All clusters" } }
                h1 { (name) }
                div #fresh { (part("fresh")) }
                noscript { p { a href="" { "Read again" } " – this page does not change by itself without scripts." } }
                p #connection .bad role="alert" hidden {}
                p #news .hidden role="status" aria-live="polite" { (part("news")) }
            }
            main #main tabindex="-1" {
                (section("summary", "State", false))
                section aria-labelledby="picture-title" {
                    h2 #picture-title { "Nodes" }
                    div #legend { (part("legend")) }
                    div #picture { (part(PICTURE)) }
                }
                (section("nodes", "What nodes wait for", true))
                div.columns {
                    (section("lines", "As it happens", false))
                    (section("debts", "Debts", false))
                    (section("conditions", "Conditions", true))
                    (section("history", "History", true))
                }
            }
        }
    };
    whole(&part("title"), true, &body)
}

/// The page with all clusters of the namespace.
pub(crate) fn list(namespace: &str, all: &[ClusterView]) -> String {
    let main = html! {
        @if all.is_empty() { p { "There is none." } }
        @else {
            table {
                (table_head(&["Cluster", "State", "Progress", "Ready", "Blocked by"]))
                tbody { @for one in all { (row(one)) } }
            }
        }
    };
    simple(&format!("SearchClusters of {namespace}"), &main)
}

fn row(view: &ClusterView) -> Markup {
    let report = view.report();
    html! {
        tr {
            th scope="row" { a href={ "/clusters/" (view.name) } { (view.name) } }
            td { @match report {
                Some(report) => (badge(tone_of_phase(&report.phase), &report.phase)),
                None => (badge(Tone::Warning, "Unknown")),
            } }
            td { (report.and_then(|report| report.progress.as_deref()).unwrap_or("–")) }
            td { @if let Some(report) = report { (report.counts.ready) " of " (report.counts.pods) } }
            td { @if let Some(rule) = view.blocked_by() { (code(rule)) } @else { "–" } }
        }
    }
}

/// A page of the runbook, as it is written.
pub(crate) fn runbook(name: &str, text: &str) -> String {
    simple(&format!("Runbook: {name}"), &html! { pre.runbook tabindex="0" { (text) } })
}

/// The page about an error.
pub(crate) fn problem(what: &str, message: &str) -> String {
    simple(what, &html! { p.text { (message) } })
}

fn simple(title: &str, main: &Markup) -> String {
    let body = html! {
        body {
            (skip())
            header {
                nav aria-label="Pages" { a href="/clusters" { "All clusters" } }
                h1 { (title) }
            }
            main #main tabindex="-1" { (main) }
        }
    };
    whole(&html! { (title) }, false, &body)
}

fn skip() -> Markup {
    html! { a.skip href="#main" { "Skip to the content" } }
}

fn whole(title: &Markup, is_live: bool, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title #title { (title) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/style.css";
                @if is_live { script src="/live.js" defer {} }
            }
            (body)
        }
    };
    document.into_string()
}

pub(crate) fn table_head(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

/// A message; text between backquotes is a command or a name.
pub(crate) fn prose(text: &str) -> Markup {
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
pub(crate) fn time(time: Time) -> Markup {
    let text = time_to_second(time);
    let shown = text.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(text) { (shown) } }
}

/// A code, with a link to its page of the runbook if it has one.
pub(crate) fn code(code: &str) -> Markup {
    html! {
        @if runbook::about(code).is_some() {
            a href={ "/runbook/" (code) } { code { (code) } }
        } @else { code { (code) } }
    }
}

/// CSS class for the tone of a value, which decides its color. The words and signs say the same.
pub(crate) const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "neutral",
        Tone::Good => "good",
        Tone::Warning => "warning",
        Tone::Bad => "bad",
    }
}

pub(crate) const fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "·",
        Tone::Good => "✓",
        Tone::Warning => "!",
        Tone::Bad => "✕",
    }
}

/// A word with its color and sign.
pub(crate) fn badge(tone: Tone, word: &str) -> Markup {
    html! {
        span class={ "badge " (class(tone)) } {
            span.sign aria-hidden="true" { (sign(tone)) } (word)
        }
    }
}
