//! What axe-core finds on the pages: the rules of WCAG 2.2 up to level AA, and its own best practices,
//! contrast of light and dark among them.

use std::fs;

use serde_json::{Value, json};

use super::browser::{Browser, Tab};
use super::chromium;
use super::stage::{Stage, blocked, thousand, under_way};
use crate::support::kubernetes::apiserver::part;
use crate::support::skip;

#[test] // proves PAGE-7
fn axe_finds_nothing_on_any_page() {
    const TEST: &str = "ui::axe::axe_finds_nothing_on_any_page";
    let Some(chromium) = chromium(TEST) else { return };
    let axe = match part("STAYPUT_AXE") {
        Ok(path) => fs::read_to_string(path).expect("a script"),
        Err(why) => return skip(TEST, &why),
    };
    let stage = Stage::start(&[("master", 3), ("hot", 597), ("warm", 400)]);
    stage.status(&thousand());
    let mut browser = Browser::start(&chromium);
    let mut tab = browser.tab();
    tab.open(&stage.address);
    tab.shows("of 1000 done");
    assert_nothing_found(&mut tab, &axe, "a thousand nodes");

    let stage = Stage::start(&[("master", 3), ("hot", 6), ("warm", 3)]);
    for (status, text) in [(blocked(), "Why the next node waits"), (under_way(), "under way: stop")]
    {
        stage.status(&status);
        tab.open(&stage.address);
        tab.shows(text);
        for (width, height) in [(1280, 900), (360, 740)] {
            tab.size(width, height);
            in_each_scheme(&mut tab, &axe, &format!("{text}, {width}"));
        }
    }
    for page in ["clusters", "runbook", "runbook/quorum"] {
        tab.open(&format!("{}/{page}", stage.origin()));
        in_each_scheme(&mut tab, &axe, page);
    }
    // The checks can fail.
    tab.value("document.documentElement.removeAttribute('lang')");
    let found = findings(&mut tab, &axe);
    assert_eq!(found[0]["id"], "html-has-lang", "{found}");
}

fn in_each_scheme(tab: &mut Tab<'_>, axe: &str, page: &str) {
    for scheme in ["light", "dark"] {
        tab.scheme(scheme);
        assert_nothing_found(tab, axe, &format!("{page}, {scheme}"));
    }
}

fn assert_nothing_found(tab: &mut Tab<'_>, axe: &str, page: &str) {
    assert_eq!(findings(tab, axe), json!([]), "{page}");
}

/// Each rule that is violated, with the first elements that violate it.
fn findings(tab: &mut Tab<'_>, axe: &str) -> Value {
    tab.value(&format!("{axe}; null"));
    tab.value(
        "axe.run({resultTypes: ['violations']}).then(result => result.violations.map(
            ({id, help, nodes}) => ({id, help, elements: nodes.slice(0, 5).map(
                node => [node.html.slice(0, 300), node.failureSummary])})))",
    )
}
