//! Which container is the engine's.

use serde_json::Value;

use crate::engine::Engine;

/// The container of this name; without a name the one with an official image, or with the engine's name.
pub(crate) fn find<'a>(spec: &'a Value, name: Option<&str>) -> Option<&'a Value> {
    let all = || spec["containers"].as_array().into_iter().flatten();
    let named = |container: &&Value, name: &str| container["name"].as_str() == Some(name);
    if let Some(name) = name {
        return all().find(|container| named(container, name));
    }
    let is_official = |container: &&Value| {
        container["image"].as_str().is_some_and(|image| Engine::of_image(image).is_some())
    };
    let has_its_name =
        |container: &&Value| named(container, "elasticsearch") || named(container, "opensearch");
    all().find(is_official).or_else(|| all().find(has_its_name))
}
