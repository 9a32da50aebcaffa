//! Pages as they were saved, to be read in a browser and in a review:
//! `UPDATE_DOCS=1 cargo test -p stayput-kubectl ui::tests::saved`.

use std::fs;
use std::path::Path;

use stayput_restart::Saved;

use crate::html::{self, Page};
use crate::tests::{idle, now, pods};
use crate::ui::tests::{model, trouble};
use crate::view::ClusterView;
use crate::view::live::{Location, PageModel};

#[track_caller]
fn is_as_saved(name: &str, html: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/tests");
    let file = folder.join(name).with_extension("html");
    // An element a line: differences can be read.
    let html = html.replace("><", ">\n<") + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &html).unwrap();
    }
    let saved = fs::read_to_string(&file).unwrap_or_default();
    let differs = html.lines().zip(saved.lines()).find(|(now, then)| now != then);
    assert!(html == saved, "{name} is out of date, see the first lines: {differs:?}");
}

fn page(model: &PageModel) -> String {
    html::cluster(&Page::new(model), "logs", 1)
}

#[test] // proves PAGE-1
fn a_restart_in_the_middle_of_three_pools() {
    let saved = include_str!("../../../../proto/samples/snapshot.json");
    let saved = Saved::parse(saved).unwrap();
    let mut model = PageModel::default();
    model.view = ClusterView::from_snapshot(&saved);
    model.fresh = saved.snapshot.now;
    for pod in &saved.snapshot.pods {
        let (set, number) = pod.name.rsplit_once('-').unwrap();
        let engine = saved.snapshot.engine.as_ref().unwrap();
        let node = engine.nodes.iter().find(|node| node.name == pod.node).unwrap();
        let roles = node.roles.iter().cloned().collect();
        let zone = Some(format!("eu-west-1{}", ["a", "b", "c"][number.parse::<usize>().unwrap()]));
        model.locations.insert(pod.name.clone(), Location { set: set.to_owned(), roles, zone });
    }
    is_as_saved("restart", &page(&model));
}

#[test] // proves PAGE-1
fn everything_that_can_be_wrong() {
    is_as_saved("trouble", &page(&model(&trouble(), pods())));
}

#[test] // proves PAGE-1
fn nothing_under_way() {
    is_as_saved("idle", &page(&model(&idle(), pods())));
}

#[test] // proves PAGE-1
fn not_seen_by_the_reconciler_deleted_or_lost() {
    let unknown = page(&model(&serde_json::Value::Null, pods()));
    assert!(unknown.contains("has not processed this SearchCluster"), "{unknown}");
    let deleted = page(&model(&idle(), pods()).deleted(now()));
    assert!(deleted.contains("This SearchCluster is deleted."), "{deleted}");
    let lost = page(&model(&idle(), pods()).lost("nobody answers".into()));
    assert!(lost.contains("Not live. Last read at"), "{lost}");
    assert!(lost.contains("2026-11-21 03:10:00 UTC") && lost.contains("nobody answers"), "{lost}");
    assert!(lost.contains("ready"), "what was known is still shown: {lost}");
}
