//! Puts the manager into manifests, in front of the engine, and takes it out again. Text in, text out:
//! nothing here reads a file or asks Kubernetes.
//!
//! * [`inject`]: the manifests with the manager.
//! * [`uninject`]: the manifests as they were, byte for byte.
//! * [`engine`]: properties of the engine in a pod.
//! * [`entrypoint`], [`files_by_sub_path`]: properties of a container with the manager, from any source.
//! * [`OperatedBy`]: the object in which its pods can be changed, if an operator makes them.
//!
//! `kinds` knows which objects have engines, `pod` what a pod needs, `yaml` changes the text. The text
//! before is in an annotation of the object.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]

pub mod check;
mod finding;
mod kinds;
mod manifest;
mod options;
mod pod;
mod yaml;

#[cfg(test)]
mod tests;

pub use finding::{Finding, Severity};
pub use kinds::{OperatedBy, has_tls};
pub use manifest::{Changed, Outcome, inject, uninject};
pub use options::{ConfigSource, Options};
pub use pod::{Entrypoint, Reachability, VARIABLES, entrypoint, files_by_sub_path};
pub use stayput_pod_spec::{Authority, Login};

use serde_json::Value;

/// Properties of the engine in a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineFound {
    /// How to reach the engine.
    pub reached: Reachability,
    /// True if the manager is in front of the engine.
    pub has_manager: bool,
}

/// Properties of the engine in the `spec` of a pod, if it has one.
pub fn engine(spec: &Value) -> Option<EngineFound> {
    let container = pod::find_container(spec, None)?;
    let has_manager = pod::has_manager(container);
    Some(EngineFound { reached: pod::reachability(container), has_manager })
}
