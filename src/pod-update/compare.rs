//! The least step that brings a pod to the wanted state.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::content::Content;
use crate::difference::{Leaf, Path, Segment, differences};
use crate::environment::is_given_by_manager;
use crate::fields::{Rule, rule, tolerations_step};
use crate::operators::{is_inherited, is_marker, is_of_hooks};
use crate::resources::resize_step;
use crate::template::{container, elements, has_sidecar, is_made_anew, run_once, run_once_step};
use crate::update::{UpdateStep, without_another_container};
use crate::uses::{Arrival, Use, files_of_the_pod, uses};

/// Template and content that a pod is, or was, made from.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'a> {
    /// The pod template, as a ControllerRevision or an owner keeps it: never a live pod.
    pub template: &'a Value,
    /// Content of the objects that the template names.
    pub content: &'a Content,
}

/// Abilities of the Kubernetes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// True if the apiserver serves `pods/resize`.
    pub resize: bool,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DifferenceOutput")]
pub struct Difference {
    /// The field of the template, or object and key.
    pub field: String,
    /// At most 80 characters; absent if there is none, or if it may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The wanted value, in at most 80 characters; absent if there is none, or if it may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The step that this field alone needs.
    #[schemars(with = "String")]
    pub step: UpdateStep,
}

/// Step that brings one pod to the wanted state, and the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The highest step of the differences.
    pub step: UpdateStep,
    /// All differences, those of the highest step first.
    pub because: Vec<Difference>,
}

/// The most characters of a value that are shown.
const SHOWN: usize = 80;

/// Fields of a container that may hold secrets: variables and arguments, also those of probes and
/// hooks, and the headers of these.
const MAY_BE_SECRET: [&str; 7] =
    ["env", "args", "command", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];

/// The least step that brings a pod made from `actual` to `wanted`.
pub fn compare(
    wanted: Declaration<'_>,
    actual: Declaration<'_>,
    engine_container: &str,
    abilities: Abilities,
) -> Update {
    let mut because = Vec::new();
    let leaves = differences(actual.template, wanted.template);
    let is_own = |leaf: &&Leaf| !is_inherited(leaf, &leaves, wanted.template, engine_container);
    for leaf in leaves.iter().filter(is_own) {
        let step = step(leaf, &wanted, &actual, engine_container, abilities);
        because.extend(shown_labels(leaf, step, wanted.template, engine_container));
        because.extend(shown_amounts(leaf, step, wanted.template, engine_container));
        because.push(difference(leaf, step));
    }
    because.extend(of_content(&wanted, &actual, engine_container));
    let image = format!("spec.containers[{engine_container}].image");
    let has_image = because.iter().any(|difference| difference.field == image);
    // For another image the kubelet always makes one.
    if !has_image && !is_made_anew(actual.template, engine_container) {
        for difference in &mut because {
            difference.step = without_another_container(difference.step);
        }
    }
    because.retain(|difference| difference.step != UpdateStep::None);
    because.sort_by(|one, other| other.step.cmp(&one.step).then(one.field.cmp(&other.field)));
    because.dedup();
    let step = because.first().map_or(UpdateStep::None, |difference| difference.step);
    Update { step, because }
}

fn step(
    leaf: &Leaf,
    wanted: &Declaration<'_>,
    actual: &Declaration<'_>,
    engine_container: &str,
    abilities: Abilities,
) -> UpdateStep {
    if let Some(step) = run_once_step(leaf, wanted.template, actual.template) {
        return step;
    }
    if is_given_by_manager(leaf, [actual.template, wanted.template], engine_container) {
        return UpdateStep::Restart;
    }
    // What is not known may need anything.
    let Some(rule) = rule(&leaf.path) else { return UpdateStep::Replace };
    match rule {
        Rule::NotCopied => UpdateStep::None,
        Rule::Marker(step) => step,
        Rule::Patched => UpdateStep::Relabel,
        Rule::Image => image(leaf, wanted.template, engine_container),
        Rule::Resources => resize_step(leaf, wanted.template, actual.template, abilities.resize),
        Rule::Tolerations => tolerations_step(leaf),
        Rule::Fixed => UpdateStep::Replace,
    }
}

/// The kubelet gives each container its new image alone, but nobody waits then until one container is ready
/// before the next pod gets the image: so those beside the engine's have their turn with a restart of the
/// engine. Init containers do not run again.
fn image(leaf: &Leaf, wanted: &Value, engine_container: &str) -> UpdateStep {
    let container = leaf.path.container();
    let before_others = leaf.path.is_in("spec.initContainers");
    if before_others && !has_sidecar(wanted, container) {
        UpdateStep::Replace
    } else if container == Some(engine_container) && !before_others {
        UpdateStep::Container
    } else {
        UpdateStep::Restart
    }
}

fn of_content(
    wanted: &Declaration<'_>,
    actual: &Declaration<'_>,
    engine_container: &str,
) -> Vec<Difference> {
    content_differences(&uses(wanted.template, engine_container), wanted.content, actual.content)
}

/// Differences in the used content. An object that is not known in both is no difference.
pub(crate) fn content_differences(
    uses: &BTreeSet<Use>,
    wanted: &Content,
    actual: &Content,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for used in uses {
        let step = match used.arrival {
            Arrival::Mounted => UpdateStep::Restart,
            Arrival::NewContainer => UpdateStep::Container,
            Arrival::NewPod => UpdateStep::Replace,
        };
        let changed = wanted.changed_keys(actual, used);
        found.extend(changed.into_iter().map(|change| Difference {
            field: format!("{}, key {}, in {}", used.source, change.key, used.field),
            from: change.from.map(|digest| shortened(&digest)),
            to: change.to.map(|digest| shortened(&digest)),
            step,
        }));
    }
    found
}

fn difference(leaf: &Leaf, step: UpdateStep) -> Difference {
    let value =
        |value: &Option<Value>| shown(&leaf.path, value.as_ref()?).map(|text| shortened(&text));
    Difference { field: leaf.path.to_string(), from: value(&leaf.from), to: value(&leaf.to), step }
}

/// A value for people, without anything that may be secret.
fn shown(path: &Path, value: &Value) -> Option<String> {
    match path.segments() {
        // Containers, in another order.
        [Segment::Field(spec), Segment::Field(list)] if spec == "spec" && is_containers(list) => {
            let names = elements(value).filter_map(|container| container["name"].as_str());
            Some(names.collect::<Vec<_>>().join(", "))
        }
        // A container that is added or removed.
        [Segment::Field(spec), Segment::Field(list), Segment::Element(_)]
            if spec == "spec" && is_containers(list) =>
        {
            value["image"].as_str().map(str::to_owned)
        }
        [
            Segment::Field(spec),
            Segment::Field(list),
            Segment::Element(_),
            Segment::Field(field),
            ..,
        ] if spec == "spec" && is_containers(list) && MAY_BE_SECRET.contains(&field.as_str()) => {
            None
        }
        _ => Some(match value {
            Value::String(text) => text.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value.to_string(),
        }),
    }
}

fn is_containers(list: &str) -> bool {
    matches!(list, "containers" | "initContainers")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Variables and mounted files that show a label or an annotation: of the engine's container, and of init
/// containers. A living pod gets its labels only once its engine has been proven, so that what selects pods by
/// them does not go before it. Another container would read the old ones, and another pod has the new ones.
fn shown_labels(
    leaf: &Leaf,
    step: UpdateStep,
    wanted: &Value,
    engine_container: &str,
) -> Vec<Difference> {
    let [_, Segment::Field(map), Segment::Field(key)] = leaf.path.segments() else {
        return vec![];
    };
    if !matches!(step, UpdateStep::Relabel | UpdateStep::Restart | UpdateStep::Container) {
        return vec![];
    }
    let field = format!("metadata.{map}['{key}']");
    let shows = |variable: &Value| variable["valueFrom"]["fieldRef"]["fieldPath"] == *field;
    // A file may have all of them.
    let counts = !is_marker(key);
    let has_it = |item: &Value| {
        let path = item["fieldRef"]["fieldPath"].as_str().unwrap_or_default();
        path == field || path == format!("metadata.{map}") && counts
    };
    let read: Vec<&Value> =
        container(wanted, engine_container).into_iter().chain(run_once(wanted)).collect();
    let files = shown_files(wanted, &read, has_it);
    let variables = read.into_iter().flat_map(|one| {
        let list = if one["name"] == engine_container { "containers" } else { "initContainers" };
        variables(list, one, shows, UpdateStep::Replace)
    });
    variables.chain(files).collect()
}

fn mounts(container: &Value, volume: &Value) -> bool {
    elements(&container["volumeMounts"]).any(|mount| mount["name"] == *volume)
}

/// Variables that show an amount of CPU or memory: of the engine's container, which gets another value only in a
/// new container, and of init containers, which do not run again. A mounted file that shows one to these is as old.
fn shown_amounts(
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
    let mut all = Vec::new();
    if let Some(engine) = container(wanted, engine_container) {
        all.extend(of("containers", engine, UpdateStep::Container));
    }
    let once: Vec<&Value> = run_once(wanted).collect();
    for init in &once {
        all.extend(of("initContainers", init, UpdateStep::Replace));
    }
    // The reference of a file always names its container.
    all.extend(shown_files(wanted, &once, |item| is_it(&item["resourceFieldRef"], "")));
    all
}

/// The volumes of these containers with a file that shows a changing value.
fn shown_files(
    wanted: &Value,
    readers: &[&Value],
    shows: impl Fn(&Value) -> bool,
) -> Vec<Difference> {
    files_of_the_pod(wanted, shows)
        .filter(|volume| !is_of_hooks(wanted, volume))
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
    elements(&container["env"])
        .filter(|variable| shows(variable))
        .map(|variable| Difference {
            field: format!("spec.{list}[{}].env[{}]", name(container), name(variable)),
            from: None,
            to: None,
            step,
        })
        .collect()
}
