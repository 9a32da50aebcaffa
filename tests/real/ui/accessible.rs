//! What a screen reader is given: Chromium's own tree of roles and names.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::browser::Tab;

/// Roles that are useless without a name.
const NAMED: [&str; 8] = [
    "link",
    "button",
    "image",
    "progressbar",
    "heading",
    "navigation",
    "columnheader",
    "rowheader",
];

pub(super) fn check(tab: &mut Tab<'_>) {
    let tree = tab.call("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    let nodes: Vec<&Value> = nodes.iter().filter(|node| node["ignored"] != true).collect();
    let role = |node: &Value| node["role"]["value"].as_str().unwrap_or_default().to_owned();
    let name = |node: &Value| node["name"]["value"].as_str().unwrap_or_default().trim().to_owned();
    for node in &nodes {
        let is_named = !NAMED.contains(&role(node).as_str()) || !name(node).is_empty();
        assert!(is_named, "a {} without a name: {node}", role(node));
    }
    let count = |wanted: &str| nodes.iter().filter(|node| role(node) == wanted).count();
    assert_eq!((count("main"), count("banner"), count("navigation")), (1, 1, 1));
    headings(&nodes);

    let html = tab.html();
    assert!(html.contains("<html lang=\"en\">") && !html.contains("<title id=\"title\"></title>"));
    let ids: Vec<&str> =
        html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let different: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), different.len(), "an id is given twice");
    // What names another element names one that exists.
    for attribute in [" aria-labelledby=\"", " href=\"#"] {
        for rest in html.split(attribute).skip(1) {
            let id = rest.split('"').next().expect("it ends");
            assert!(different.contains(id), "there is no {id}");
        }
    }
}

/// One of the first level, and none leaves a level out.
fn headings(nodes: &[&Value]) {
    let level = |node: &&&Value| {
        let properties = node["properties"].as_array().into_iter().flatten();
        let mut levels = properties.filter(|one| one["name"] == "level");
        levels.next().and_then(|one| one["value"]["value"].as_u64())
    };
    let headings = nodes.iter().filter(|node| node["role"]["value"] == "heading");
    let levels: Vec<u64> = headings.filter_map(|node| level(&node)).collect();
    assert_eq!(levels.first(), Some(&1), "{levels:?}");
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{levels:?}");
    assert!(levels.windows(2).all(|two| two[1] <= two[0] + 1), "{levels:?}");
}
