//! Variables of the engine that its manager gives it, from an annotation of the pod: the variables of a container
//! stay as they are as long as its pod lives.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::difference::{Leaf, Segment};
use crate::mounted_config::manager_option;
use crate::template::{container, elements};
use crate::update::Change;

/// Beginnings of names that the manager reads, or ECK's hook and probe, which are run beside the engine.
const READ_BESIDE: [&str; 5] =
    ["STAYPUT_", "PRE_STOP_", "READINESS_PROBE_", "PROBE_", "HEADLESS_SERVICE_NAME"];

/// Commands that the kubelet runs in the container: they see its own variables.
const HOOKS: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

/// True if this container gives its manager the variables of the annotation.
fn takes_environment(container: &Value) -> bool {
    manager_option(container, "environment").is_ok_and(|files| !files.is_empty())
}

/// The variable of a container with this name.
fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    elements(&container["env"]).find(|variable| variable["name"] == name)
}

/// The variables of a container whose values its template has, by name.
fn literals(container: &Value) -> BTreeMap<&str, &str> {
    let own = elements(&container["env"]).filter(|variable| variable["valueFrom"].is_null());
    own.filter_map(|one| Some((one["name"].as_str()?, one["value"].as_str().unwrap_or_default())))
        .collect()
}

/// True for a variable of the engine's container that its manager can give to the engine: one with a value of its own in
/// both templates, and nothing else of the container goes by it.
pub(crate) fn is_given_by_manager(
    leaf: &Leaf,
    [actual, wanted]: [&Value; 2],
    engine: &str,
) -> bool {
    let [
        Segment::Field(spec),
        Segment::Field(list),
        Segment::Element(of),
        Segment::Field(env),
        Segment::Element(name),
        ..,
    ] = leaf.path.segments()
    else {
        return false;
    };
    let both = [container(actual, engine), container(wanted, engine)];
    let ([Some(before), Some(after)], ("spec", "containers", "env"), true) =
        (both, (spec.as_str(), list.as_str(), env.as_str()), of == engine)
    else {
        return false;
    };
    let is_literal = |container: &Value| {
        variable(container, name).is_none_or(|one| {
            let value = one["value"].as_str().unwrap_or_default();
            one["valueFrom"].is_null() && !value.contains("$(")
        })
    };
    let is_read_elsewhere = |container: &Value| {
        let is_referred_to = container.to_string().contains(&format!("$({name})"));
        is_referred_to || HOOKS.iter().any(|hook| has_word(&container[*hook].to_string(), name))
    };
    // Without its own value it would have the one from there.
    let is_bared = variable(after, name).is_none() && elements(&after["envFrom"]).next().is_some();
    takes_environment(before)
        && !READ_BESIDE.iter().any(|beginning| name.starts_with(beginning))
        && [before, after].into_iter().all(|one| is_literal(one) && !is_read_elsewhere(one))
        && !is_bared
}

fn has_word(text: &str, word: &str) -> bool {
    let is_of_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    text.split(|one| !is_of_name(one)).any(|found| found == word)
}

/// The change of the annotation `stayput.dev/environment` with which the engine of a pod has the variables of the wanted
/// template. `own`: values in the spec of the pod's container; `seen`: the annotation now.
pub fn environment(
    [actual, wanted]: [&Value; 2],
    engine: &str,
    own: &BTreeMap<String, String>,
    seen: Option<&String>,
) -> Option<Change> {
    let [before, after] = [container(actual, engine)?, container(wanted, engine)?];
    if !takes_environment(before) {
        return None;
    }
    let given_now: BTreeMap<String, Option<String>> =
        seen.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let (before, after) = (literals(before), literals(after));
    let names = before.keys().chain(after.keys()).copied();
    let changed = names.filter(|name| before.get(name) != after.get(name));
    let names: BTreeSet<&str> = changed.chain(given_now.keys().map(String::as_str)).collect();
    let is_other = |name: &&str| after.get(name).copied() != own.get(*name).map(String::as_str);
    let given: BTreeMap<&str, Option<&&str>> =
        names.into_iter().filter(is_other).map(|name| (name, after.get(name))).collect();
    let wanted = (!given.is_empty()).then(|| serde_json::json!(given).to_string());
    (seen != wanted.as_ref()).then(|| Change { seen: seen.cloned(), wanted })
}
