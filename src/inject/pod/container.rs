//! The engine's container in a pod.

use serde_json::Value;

use crate::edit::{Path, Step};
use crate::engine::Engine;
use crate::finding::ObjectIssue;

/// The container of this name; without a name the one with an official image, or with the engine's name.
pub(crate) fn find<'a>(spec: &'a Value, name: Option<&str>) -> Option<&'a Value> {
    let all = || spec["containers"].as_array().into_iter().flatten();
    if let Some(name) = name {
        return all().find(|container| container["name"] == name);
    }
    all().find(|one| is_official(one)).or_else(|| all().find(|one| has_engines_name(one)))
}

/// True if the image of a container is known.
pub(crate) fn is_official(container: &Value) -> bool {
    container["image"].as_str().is_some_and(|image| Engine::of_image(image).is_some())
}

fn has_engines_name(container: &Value) -> bool {
    container["name"].as_str().is_some_and(|name| Engine::named(name).is_some())
}

/// Notes about containers of the pod that look like an engine, beside the one that gets the manager.
pub(crate) fn others(at: &Path, spec: &Value, engine: &Value) -> Vec<ObjectIssue> {
    let all = spec["containers"].as_array().into_iter().flatten();
    let others = all.filter(|one| one["name"] != engine["name"] && is_official(one));
    others
        .map(|other| {
            let name = other["name"].as_str().unwrap_or_default();
            let engine = engine["name"].as_str().unwrap_or_default();
            ObjectIssue::note(
                at.then(Step::named(name)),
                format!("it has the image of an engine, too, and gets no manager: only {engine} is restarted"),
                format!("Run one engine in a pod. If {name} is the engine: --container {name}"),
            )
        })
        .collect()
}
