//! How large the surface is: a line for each kind of thing that somebody can see or has to know.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{help, names};
use crate::support::sources::product;
use crate::support::yaml::documents;

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a text")
}

/// Every field in a schema, also of objects in lists and in maps.
fn fields(schema: &Value) -> usize {
    let own = schema["properties"].as_object();
    let own = own.map_or(0, |properties| properties.len());
    own + children(schema).map(fields).sum::<usize>()
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(all) => Box::new(all.values()),
        Value::Array(all) => Box::new(all.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

fn schema_fields(path: &str) -> usize {
    fields(&serde_json::from_str(&file(path)).expect("JSON"))
}

fn files_in(folder: &str, extension: &str) -> usize {
    let pattern = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("*.{extension}"));
    glob::glob(pattern.to_str().expect("UTF-8")).expect("a pattern").count()
}

pub(super) fn text() -> String {
    let mut rows: Vec<(String, usize)> = Vec::new();
    for program in help::programs() {
        let (commands, options) = help::sizes(&program);
        rows.push((format!("commands of {}", program.get_name()), commands));
        rows.push((format!("options of {}", program.get_name()), options));
    }
    let crd = documents(&file("deploy/base/crd.yaml")).remove(0);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    rows.push(("fields in the spec of a SearchCluster".into(), fields(&schema["spec"])));
    rows.push(("fields in the status of a SearchCluster".into(), fields(&schema["status"])));
    for name in ["kubectl-stayput", "status"] {
        let path = format!("proto/{name}.schema.json");
        rows.push((format!("fields in {path}"), schema_fields(&path)));
    }
    rows.push(("routes of the manager".into(), stayput_manager::http::ROUTES.len()));
    for of in ["manager", "reconciler"] {
        let metrics = file(&format!("proto/metrics/{of}.txt"));
        let count = metrics.lines().filter(|line| line.starts_with("# TYPE ")).count();
        rows.push((format!("metrics of the {of}"), count));
    }
    let alerts = file("deploy/monitoring/rules.yaml").matches("alert: ").count();
    rows.push(("alerts".into(), alerts));
    rows.push(("pages of the runbook".into(), files_in("docs/runbook", "md") - 1));
    let names = names::of(&product());
    for (title, words) in &names {
        rows.push((format!("names, {title}"), words.len()));
    }
    let width = rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or_default();
    rows.iter().map(|(what, count)| format!("{what:width$} {count:>5}\n")).collect()
}
