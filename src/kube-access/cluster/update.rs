//! `spec.update`: whether an edited template of a StatefulSet is carried out, and by which steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stayput_restart::UpdateStep;

/// How edited pod templates are carried out in pods that exist already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.mode == 'off' || self.allow.size() > 0",
    "message": "with an empty update.allow nothing could ever be carried out: name steps there, \
                or set update.mode to off",
}]))]
pub struct UpdateSpec {
    /// off: changes nothing; `kubectl stayput diff` shows the differences. inPlace: a pod whose StatefulSet
    /// has another template now is brought to it by the least step, and the pod is kept where that is
    /// possible. The StatefulSet must have the update strategy OnDelete.
    pub mode: UpdateMode,
    /// The steps that are carried out without being asked for. A pod that needs another one waits.
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "set"))]
    pub allow: Vec<AllowedStep>,
}

impl Default for UpdateSpec {
    fn default() -> Self {
        use AllowedStep::{Container, Relabel, Resize, Restart};
        Self { mode: UpdateMode::Off, allow: vec![Relabel, Restart, Container, Resize] }
    }
}

/// How edited templates are carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpdateMode {
    /// Not at all.
    #[default]
    Off,
    /// In the pods that exist already.
    InPlace,
}

/// A step that may be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AllowedStep {
    /// Labels and annotations.
    Relabel,
    /// The engine's process is started anew, also for images of other containers than the engine's.
    Restart,
    /// A new container in the same pod.
    Container,
    /// CPU and memory of the pod.
    Resize,
    /// The pod is deleted; the reconciler needs the role of deploy/replace for that.
    Replace,
}

impl From<AllowedStep> for UpdateStep {
    fn from(written: AllowedStep) -> Self {
        match written {
            AllowedStep::Relabel => Self::Relabel,
            AllowedStep::Restart => Self::Restart,
            AllowedStep::Container => Self::Container,
            AllowedStep::Resize => Self::Resize,
            AllowedStep::Replace => Self::Replace,
        }
    }
}
