//! The pages of `kubectl stayput ui` in a real Chromium: with and without scripts, as a person with a
//! screen reader, a keyboard, a narrow or a dark screen meets them.
//!
//! `UPDATE_DOCS=1` writes the pictures in `docs/ui`.

mod accessible;
mod axe;
mod browser;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::kubernetes::apiserver::part;
use crate::support::skip;
use browser::{Browser, Tab};
use stage::{Stage, blocked, thousand, under_way};

/// The program; without it the test is skipped.
fn chromium(test: &str) -> Option<PathBuf> {
    part("STAYPUT_CHROMIUM").map_err(|why| skip(test, &why)).ok()
}

/// The picture in the documents; only if wanted, since no two machines have the same fonts.
fn picture(tab: &mut Tab<'_>, name: &str) {
    let png = tab.picture();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{name}: {} bytes", png.len());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        assert!(png.len() <= 150_000, "{name} is too large: {} bytes", png.len());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ui");
        fs::write(folder.join(name).with_extension("png"), png).expect("a picture");
    }
}

#[test] // proves PAGE-1, PAGE-7
fn the_state_is_there_without_scripts_and_for_everybody() {
    const TEST: &str = "ui::the_state_is_there_without_scripts_and_for_everybody";
    let Some(chromium) = chromium(TEST) else { return };
    let stage = Stage::start(&[("master", 3), ("hot", 6), ("warm", 3)]);
    stage.status(&blocked());
    let mut browser = Browser::start(&chromium);
    let mut tab = browser.tab();
    tab.without_scripts();
    tab.open(&stage.address);
    let html = tab.html();
    for text in [
        "Blocked",
        "Why the next node waits",
        "href=\"/runbook/quorum\"",
        "logs-hot-5",
        "zone eu-west-1b",
        "Read again",
        "cluster.routing.allocation.enable must be restored",
    ] {
        assert!(html.contains(text), "no {text}: {html}");
    }
    accessible::check(&mut tab);
    tab.open(&format!("{}/clusters", stage.origin()));
    accessible::check(&mut tab);
    tab.open(&format!("{}/runbook/quorum", stage.origin()));
    accessible::check(&mut tab);
}

#[test] // proves PAGE-5, PAGE-7
fn a_restart_is_seen_as_it_happens() {
    const TEST: &str = "ui::a_restart_is_seen_as_it_happens";
    let Some(chromium) = chromium(TEST) else { return };
    let mut stage = Stage::start(&[("master", 3), ("hot", 6), ("warm", 3)]);
    stage.status(&blocked());
    let mut browser = Browser::start(&chromium);
    let mut tab = browser.tab();
    tab.size(1280, 900);
    tab.open(&stage.address);
    tab.shows("Why the next node waits");
    picture(&mut tab, "blocked-light");

    // The keyboard: first the way past the head, and what has the focus is seen, and keeps it.
    tab.press("Tab");
    assert_eq!(tab.value("document.activeElement.className"), "skip");
    assert_ne!(tab.value("getComputedStyle(document.activeElement).outlineStyle"), "none");
    tab.value("document.querySelector('#pod-logs-hot-5 a').focus()");
    stage.status(&under_way());
    tab.shows("logs-hot-5 under way: stop");
    assert_eq!(tab.value("document.activeElement.getAttribute('href')"), "#why-logs-hot-5");
    assert_eq!(tab.value("document.title.split(' ')[0]"), "Restarting");
    let said = tab.value("document.getElementById('news').textContent");
    assert_eq!(said, "Restarting, rolling 4/12 done");
    accessible::check(&mut tab);
    tab.scheme("dark");
    picture(&mut tab, "restart-dark");
    tab.size(360, 740);
    assert_eq!(tab.value("document.documentElement.scrollWidth <= innerWidth"), true);
    assert_eq!(tab.problems(), json!([]), "the browser has complained");

    stage.end_program();
    tab.shows("No connection to kubectl stayput ui");
}

#[test] // proves PAGE-8
fn a_thousand_nodes_fit() {
    const TEST: &str = "ui::a_thousand_nodes_fit";
    let Some(chromium) = chromium(TEST) else { return };
    let stage = Stage::start(&[("master", 3), ("hot", 597), ("warm", 400)]);
    stage.status(&thousand());
    let mut browser = Browser::start(&chromium);
    let mut tab = browser.tab();
    tab.size(1280, 900);
    tab.open(&stage.address);
    tab.shows("of 1000 done");
    assert_eq!(tab.value("document.querySelectorAll('#picture li').length"), 1000);
    assert_eq!(tab.value("document.documentElement.scrollWidth <= innerWidth"), true);
    // Only what has a line of its own takes a press of Tab.
    assert_eq!(tab.value("document.querySelectorAll('#picture a').length < 100"), true);
    picture(&mut tab, "thousand-light");
}
