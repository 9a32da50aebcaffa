//! A StatefulSet, written by hand or by a chart.

use serde_json::Value;

use super::Plan;
use crate::edit::Path;
use crate::finding::ObjectIssue;
use crate::operated::OperatedBy;
use crate::options::Options;
use crate::pod::{self, Pod};

pub(super) fn plan(object: &Value, cluster: &str, options: &Options) -> Option<Plan> {
    let at = Path::keys(&["spec", "template", "spec"]);
    let spec = &object["spec"]["template"]["spec"];
    let container = pod::find_container(spec, options.container.as_deref())?;
    if let Some(owner) = OperatedBy::of(&object["metadata"]) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        return Some(Plan { found: vec![owner.refusal(namespace)], ..Plan::default() });
    }
    if pod::has_manager(container) {
        let found = pod::by_hand(format!("{at}.containers"));
        return Some(Plan { found: vec![found], ..Plan::default() });
    }
    let claims = &object["spec"]["volumeClaimTemplates"];
    let (changes, found) = pod::changes(Pod { at: &at, spec, claims, cluster, options }, container);
    Some(Plan { changes, found, rollout: rollout(object) })
}

/// True if the container's command or its image tells how the engine is started.
pub(super) fn has_known_command(object: &Value, options: &Options) -> Option<bool> {
    let spec = &object["spec"]["template"]["spec"];
    let container = pod::find_container(spec, options.container.as_deref())?;
    let has_own = container["command"].as_array().is_some_and(|words| !words.is_empty());
    Some(has_own || pod::is_official(container))
}

/// A note that another pod template replaces all pods, each as soon as the one before is ready.
fn rollout(object: &Value) -> Option<ObjectIssue> {
    let strategy = &object["spec"]["updateStrategy"]["type"];
    let on_delete = r#"{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}"#;
    let name = object["metadata"]["name"].as_str().unwrap_or("NAME");
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map(|name| format!("--namespace {name} ")).unwrap_or_default();
    (strategy != "OnDelete").then(|| {
        ObjectIssue::note(
            "spec.updateStrategy.type",
            "with RollingUpdate Kubernetes replaces all running pods, each when the one before is ready, not when \
             the cluster is green",
            format!(
                "To delete them yourself, one by one, run before: `kubectl {namespace}patch statefulset {name} \
                 --patch '{on_delete}'`"
            ),
        )
    })
}
