//! The manager in a container, from any source.

use serde_json::Value;

use super::command::{passes_signals_on, words};
use super::config::single_files;
use crate::engine::Engine;

/// The first process of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entrypoint {
    /// The manager is its first process, or the image may make it that.
    Manager,
    /// The manager is started by this program, which stays in front of it.
    Behind(String),
    /// The engine is started without the manager.
    Engine,
}

/// How the command or the image of a container starts it.
pub fn entrypoint(container: &Value) -> Entrypoint {
    let command = words(&container["command"]);
    let arguments = words(&container["args"]);
    let is_manager = |word: &String| word.rsplit('/').next() == Some("stayput");
    let Some(first) = command.first() else {
        let image = container["image"].as_str().unwrap_or_default();
        // An image that is not known may have the manager as its entrypoint.
        let is_engine = Engine::of_image(image).is_some() && !Engine::is_behind_manager(image);
        return if is_engine && !arguments.iter().any(is_manager) {
            Entrypoint::Engine
        } else {
            Entrypoint::Manager
        };
    };
    if is_manager(first) {
        return Entrypoint::Manager;
    }
    let all = [command.as_slice(), &arguments].concat();
    let script =
        all.iter().find(|word| word.split_whitespace().any(|each| is_manager(&each.into())));
    match script {
        None => Entrypoint::Engine,
        // Bash and others replace themselves by what `exec` names.
        Some(script) if passes_signals_on(script) => Entrypoint::Manager,
        Some(_) => Entrypoint::Behind(first.clone()),
    }
}

/// Files in the engine's config directory that are mounted one by one from a Secret or a ConfigMap:
/// a change of them does not arrive in a living pod. `spec` is that of the pod.
pub fn files_by_sub_path(spec: &Value, container: &Value) -> Vec<String> {
    let image = container["image"].as_str().unwrap_or_default();
    let name = container["name"].as_str().unwrap_or_default();
    let engine = Engine::of_image(image).or_else(|| Engine::named(name));
    engine.map(|engine| single_files(spec, container, engine.config)).unwrap_or_default()
}
