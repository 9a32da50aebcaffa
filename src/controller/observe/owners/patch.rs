//! The changes between two templates that a living pod takes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stayput_pod_update::{resized, runs_once};
use stayput_restart::{Change, PodPatch};

use crate::pods::{LiveFacts, PodFacts};

/// The changes that bring a pod from one template to another. Leaves out values that the pod has already, but
/// not an image: an update that ended in the middle may have left it, and its container need not run.
pub(super) fn patch([from, to]: [&Value; 2], pod: &PodFacts, live: &LiveFacts) -> PodPatch {
    let mut patch = PodPatch {
        labels: changes(&from["metadata"]["labels"], &to["metadata"]["labels"], &pod.labels),
        annotations: changes(
            &from["metadata"]["annotations"],
            &to["metadata"]["annotations"],
            &live.annotations,
        ),
        ..PodPatch::default()
    };
    for list in ["containers", "initContainers"] {
        for wanted in to["spec"][list].as_array().into_iter().flatten() {
            let name = wanted["name"].as_str().unwrap_or_default();
            let before = from["spec"][list].as_array().into_iter().flatten();
            let before = before.into_iter().find(|container| container["name"] == name);
            let (Some(before), Some(live)) = (before, live.container(name)) else { continue };
            if let Some(image) = wanted["image"].as_str()
                && before["image"] != wanted["image"]
            {
                patch.images.insert(name.to_owned(), change(&live.image, image));
            }
            // No request changes the size of a container that has run and ended.
            if runs_once(to, name) {
                continue;
            }
            let seen: Value = serde_json::from_str(&live.resources).unwrap_or_default();
            let resources = resized(&seen, &before["resources"], &wanted["resources"]);
            if resources != seen {
                let resources = resources.to_string();
                patch.resources.insert(name.to_owned(), change(&live.resources, &resources));
            }
        }
    }
    patch
}

fn change(seen: &str, wanted: &str) -> Change {
    Change { seen: Some(seen.to_owned()), wanted: Some(wanted.to_owned()) }
}

/// The keys that differ between the templates, where the pod does not have the wanted value yet.
fn changes(from: &Value, to: &Value, live: &BTreeMap<String, String>) -> BTreeMap<String, Change> {
    let keys = |map: &Value| -> BTreeSet<String> {
        map.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
    };
    keys(from)
        .union(&keys(to))
        .filter(|key| from.get(key) != to.get(key))
        .filter_map(|key| {
            let seen = live.get(key).cloned();
            let wanted = to.get(key).and_then(Value::as_str).map(str::to_owned);
            (seen != wanted).then(|| (key.clone(), Change { seen, wanted }))
        })
        .collect()
}
