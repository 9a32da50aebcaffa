//! CPU and memory of a container: changes that `pods/resize` takes, and changes that need another pod.
//!
//! Source: `ValidatePodResize` of Kubernetes 1.34.

use serde_json::Value;

use crate::difference::Leaf;
use crate::path::Segment;
use crate::quantity::thousandths;
use crate::run_once;
use crate::step::UpdateStep;
use crate::template::{containers, is_sidecar};

/// The step for a change of a container's resources.
pub(crate) fn step(leaf: &Leaf, wanted: &Value, actual: &Value, may_resize: bool) -> UpdateStep {
    let field = |position| match leaf.path.segments().get(position) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    let of_cpu_or_memory = matches!(field(4), "requests" | "limits")
        && matches!(field(5), "cpu" | "memory")
        && leaf.path.segments().len() == 6;
    if same_amount(leaf) {
        return UpdateStep::None;
    }
    // The apiserver lets nobody remove an amount.
    let possible = may_resize
        && of_cpu_or_memory
        && leaf.to.is_some()
        && (field(1) == "containers" || is_sidecar(leaf.path.container(), wanted))
        && quality(wanted) == quality(actual)
        && quality(&run_once::with_sizes_of(wanted, actual)) == quality(actual)
        && ![wanted, actual].into_iter().any(cannot_be_resized);
    if possible { UpdateStep::Resize } else { UpdateStep::Replace }
}

/// True if both values are the same amount, in whatever words.
pub(crate) fn same_amount(leaf: &Leaf) -> bool {
    let from = amount(leaf.from.as_ref());
    from.is_some() && from == amount(leaf.to.as_ref())
}

pub(crate) fn amount(value: Option<&Value>) -> Option<i128> {
    match value? {
        Value::String(text) => thousandths(text),
        Value::Number(number) => thousandths(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn cannot_be_resized(template: &Value) -> bool {
    let of_the_pod = ["requests", "limits"].iter().any(|kind| {
        let amounts = template["spec"]["resources"][kind].as_object();
        amounts.is_some_and(|amounts| !amounts.is_empty())
    });
    of_the_pod || template["spec"]["os"]["name"] == "windows"
}

/// The pod's quality of service, which a resize may not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Quality {
    Guaranteed,
    Burstable,
    BestEffort,
}

pub(crate) fn quality(template: &Value) -> Quality {
    let all = || containers(template, "containers").chain(containers(template, "initContainers"));
    let given = |container: &Value, kind: &str, name: &str| {
        amount(container["resources"][kind].get(name)).filter(|amount| *amount != 0)
    };
    let names = ["cpu", "memory"];
    let nothing = |container: &Value| {
        names.iter().all(|name| {
            given(container, "requests", name).is_none()
                && given(container, "limits", name).is_none()
        })
    };
    // A request that is not given is the limit.
    let guaranteed = |container: &Value| {
        names.iter().all(|name| {
            let limit = given(container, "limits", name);
            limit.is_some() && given(container, "requests", name).or(limit) == limit
        })
    };
    if all().all(nothing) {
        Quality::BestEffort
    } else if all().all(guaranteed) {
        Quality::Guaranteed
    } else {
        Quality::Burstable
    }
}
