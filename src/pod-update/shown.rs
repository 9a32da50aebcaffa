//! Labels, annotations, and amounts of CPU and memory that containers show of their pod, in
//! variables and mounted files.

use serde_json::Value;

use crate::compare::{Difference, RESTARTED_AT};
use crate::difference::Leaf;
use crate::path::Segment;
use crate::run_once;
use crate::step::UpdateStep;
use crate::template::containers;
use crate::volumes;

/// Variables and mounted files that show a label or an annotation: of the engine's container, and of init
/// containers. A living pod gets its labels only once its engine has been proven, so that what selects pods by
/// them does not go before it. Another container would read the old ones, and another pod has the new ones.
pub(crate) fn shown_labels(
    leaf: &Leaf,
    step: UpdateStep,
    wanted: &Value,
    engine_container: &str,
) -> Vec<Difference> {
    let [_, Segment::Field(map), Segment::Field(key)] = leaf.path.segments() else {
        return vec![];
    };
    if !matches!(step, UpdateStep::Relabel | UpdateStep::Restart) {
        return vec![];
    }
    let field = format!("metadata.{map}['{key}']");
    let shows = |variable: &Value| variable["valueFrom"]["fieldRef"]["fieldPath"] == *field;
    let engine =
        containers(wanted, "containers").filter(|container| container["name"] == engine_container);
    let once = run_once::containers_of(wanted);
    // A file may have all of them. Each restart that a person asks for has another annotation.
    let is_asked = key == RESTARTED_AT;
    let has_it = |item: &Value| {
        let path = item["fieldRef"]["fieldPath"].as_str().unwrap_or_default();
        path == field || path == format!("metadata.{map}") && !is_asked
    };
    let read: Vec<&Value> = engine.chain(once).collect();
    let files = shown_files(wanted, &read, has_it);
    let variables = read.into_iter().flat_map(|one| {
        let list = if one["name"] == engine_container { "containers" } else { "initContainers" };
        variables(list, one, shows, UpdateStep::Replace)
    });
    variables.chain(files).collect()
}

fn mounts(container: &Value, volume: &Value) -> bool {
    let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
    mounts.any(|mount| mount["name"] == *volume)
}

/// Variables that show an amount of CPU or memory: of the engine's container, which gets another value only in a
/// new container, and of init containers, which do not run again. A mounted file that shows one to these is as old.
pub(crate) fn shown_amounts(
    leaf: &Leaf,
    step: UpdateStep,
    wanted: &Value,
    engine_container: &str,
) -> Vec<Difference> {
    let (UpdateStep::Resize, [.., Segment::Field(kind), Segment::Field(name)]) =
        (step, leaf.path.segments())
    else {
        return vec![];
    };
    let is_it = |reference: &Value, own: &str| {
        let of = reference["containerName"].as_str().unwrap_or(own);
        let shown = reference["resource"].as_str().unwrap_or_default();
        // A request that is not given is the limit.
        let is_shown = shown == format!("{kind}.{name}") || shown == format!("requests.{name}");
        is_shown && leaf.path.container() == Some(of)
    };
    let of = |list: &'static str, one: &Value, step| {
        let own = one["name"].as_str().unwrap_or_default().to_owned();
        let shows = |variable: &Value| is_it(&variable["valueFrom"]["resourceFieldRef"], &own);
        variables(list, one, shows, step)
    };
    let engine =
        containers(wanted, "containers").filter(|container| container["name"] == engine_container);
    let of_engine = engine.flat_map(|one| of("containers", one, UpdateStep::Container));
    let once: Vec<&Value> = run_once::containers_of(wanted).collect();
    let of_once = once
        .iter()
        .flat_map(|one| of("initContainers", one, UpdateStep::Replace))
        .collect::<Vec<_>>();
    // The reference of a file always names its container.
    let files = shown_files(wanted, &once, |item| is_it(&item["resourceFieldRef"], ""));
    of_engine.chain(of_once).chain(files).collect()
}

/// The volumes of these containers with a file that shows a changing value.
fn shown_files(
    wanted: &Value,
    readers: &[&Value],
    shows: impl Fn(&Value) -> bool,
) -> Vec<Difference> {
    volumes::of_the_pod(wanted, shows)
        .filter(|volume| readers.iter().any(|container| mounts(container, &volume["name"])))
        .map(|volume| Difference {
            field: format!("spec.volumes[{}]", volume["name"].as_str().unwrap_or_default()),
            from: None,
            to: None,
            step: UpdateStep::Replace,
        })
        .collect()
}

/// The variables of a container that show a changing value.
fn variables(
    list: &str,
    container: &Value,
    shows: impl Fn(&Value) -> bool,
    step: UpdateStep,
) -> Vec<Difference> {
    let name = |named: &Value| named["name"].as_str().unwrap_or_default().to_owned();
    let all = container["env"].as_array().into_iter().flatten();
    all.filter(|variable| shows(variable))
        .map(|variable| Difference {
            field: format!("spec.{list}[{}].env[{}]", name(container), name(variable)),
            from: None,
            to: None,
            step,
        })
        .collect()
}
