//! Names and messages come from the cluster: whatever they contain, they stay text.

use serde_json::{Value, json};

use crate::html::{self, Page, changes};
use crate::tests::{idle, pods};
use crate::ui::tests::{model, trouble};
use crate::view::live::PageModel;

const HOSTILE: &str =
    "</title><script>alert(1)</script>\" onload=\"x' `<img src=x onerror=y>` &lt; <!--";

/// The tags of a document with the names of their attributes, without any value.
fn skeleton(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        let mut quoted = false;
        let is_end = |c: char| {
            quoted ^= c == '"';
            c == '>' && !quoted
        };
        let end = rest.find(is_end).expect("every tag ends");
        // What is between two quotation marks is a value.
        let names: Vec<&str> = rest[..end].split('"').step_by(2).collect();
        tags.push(names.concat());
        rest = &rest[end..];
    }
    tags
}

/// A text in the place of every text that is not read as something else.
fn poison(value: &mut Value, text: &str) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| poison(one, text)),
        Value::Object(fields) => {
            for (name, field) in fields {
                let is_text = matches!(
                    name.as_str(),
                    "message"
                        | "reason"
                        | "phase"
                        | "blocked"
                        | "blockedBy"
                        | "progress"
                        | "state"
                        | "estimate"
                        | "id"
                        | "by"
                        | "type"
                        | "status"
                        | "checksum"
                        | "down"
                        | "name"
                        | "node"
                        | "because"
                        | "sourceAbsent"
                );
                match field {
                    Value::String(old) if is_text => *old = text.to_owned(),
                    Value::Array(all) if name == "because" => *all = vec![text.into()],
                    _ => poison(field, text),
                }
            }
        }
        _ => {}
    }
}

fn poisoned(text: &str) -> PageModel {
    let mut status = trouble();
    status["sourceAbsent"] = "x".into();
    poison(&mut status, text);
    let mut pods = pods();
    for (number, pod) in pods.iter_mut().enumerate() {
        let name = format!("{text}{number}");
        pod["metadata"]["name"] = name.clone().into();
        pod["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": name});
        let phase = "elasticsearch.k8s.elastic.co/restart-phase";
        pod["metadata"]["annotations"][phase] = text.into();
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": true, "uid": "u", "name": text,
        }]);
    }
    model(&status, pods)
}

#[test] // proves PAGE-3
fn no_text_of_the_cluster_becomes_a_tag_or_an_attribute() {
    let document = |text: &str| {
        let page = Page::new(&poisoned(text).lost(text.to_owned()));
        html::cluster(&page, "logs", 1)
    };
    // The message's backquotes are read: they are in both.
    let harmless = document("a `b` c");
    let hostile = document(HOSTILE);
    assert!(hostile.matches("&lt;script&gt;alert(1)").count() > 40, "it is shown everywhere");
    assert_eq!(skeleton(&hostile), skeleton(&harmless));
    assert!(!hostile.contains("<script>") && !hostile.contains("<img"));
}

#[test] // proves PAGE-3
fn nor_in_what_changes_in_the_list_or_in_a_problem() {
    let page = Page::new(&poisoned(HOSTILE));
    for change in changes(None, &page) {
        assert!(!change.html.contains("<script") && !change.html.contains("<img"), "{change:?}");
    }
    let list = html::list(HOSTILE, &[poisoned(HOSTILE).view, model(&idle(), vec![]).view]);
    let problem = html::problem(HOSTILE, HOSTILE);
    for html in [list, problem] {
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
}

#[test] // proves PAGE-3
fn the_skeleton_sees_what_gets_out() {
    let good = skeleton("<p class=\"a > b\">x</p>");
    assert_eq!(good, ["p class=", "/p"]);
    assert_ne!(skeleton("<p class=\"a\" onload=\"b\">x</p>"), good);
    assert_ne!(skeleton("<p class=\"a\"><i>x</p>"), good);
}
