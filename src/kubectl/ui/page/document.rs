//! Whole documents. Everything in them works without scripts; the script only replaces the parts
//! that change.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Page;
use super::text::{badge, code};
use crate::cluster_view::ClusterView;
use crate::page::Tone;

pub(crate) const STYLE: &str = include_str!("style.css");
pub(crate) const SCRIPT: &str = include_str!("live.js");

/// The page of a cluster.
pub(crate) fn cluster(page: &Page, name: &str, version: u64) -> String {
    let part = |id: &str| PreEscaped(page.html(id).to_owned());
    let section = |id: &str, title: &str| {
        html! {
            section aria-labelledby={ (id) "-title" } {
                h2 id={ (id) "-title" } { (title) }
                div id=(id) { (part(id)) }
            }
        }
    };
    // On a narrow screen a table is wider than its section: the keyboard has to reach what scrolls.
    let with_table = |id: &str, title: &str| {
        html! {
            section aria-labelledby={ (id) "-title" } {
                h2 id={ (id) "-title" } { (title) }
                div id=(id) tabindex="0" role="group" aria-labelledby={ (id) "-title" } { (part(id)) }
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
                (section("summary", "State"))
                section aria-labelledby="picture-title" {
                    h2 #picture-title { "Nodes" }
                    div #legend { (part("legend")) }
                    div #picture { (part(super::PICTURE)) }
                }
                (with_table("nodes", "What nodes wait for"))
                div.columns {
                    (section("lines", "As it happens"))
                    (section("debts", "Debts"))
                    (with_table("conditions", "Conditions"))
                    (with_table("history", "History"))
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
                thead { tr {
                    @for name in ["Cluster", "State", "Progress", "Ready", "Blocked by"] { th scope="col" { (name) } }
                } }
                tbody { @for one in all { (row(one)) } }
            }
        }
    };
    simple(&format!("SearchClusters of {namespace}"), &main)
}

fn row(view: &ClusterView) -> Markup {
    let report = view.status.as_ref().map(|status| &status.report);
    html! {
        tr {
            th scope="row" { a href={ "/clusters/" (view.name) } { (view.name) } }
            td { @match report {
                Some(report) => (badge(super::summary::tone(&report.phase), &report.phase)),
                None => (badge(Tone::Warning, "Unknown")),
            } }
            td { (report.and_then(|report| report.progress.as_deref()).unwrap_or("–")) }
            td { @if let Some(report) = report { (report.counts.ready) " of " (report.counts.pods) } }
            td { @match report.and_then(|report| report.blocked.as_deref()) {
                Some(rule) => (code(rule)),
                None => "–",
            } }
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
