//! CPU and memory of containers: changes that `pods/resize` takes, the values of a living container after a change of its
//! template, and whether the kubelet has put them into effect.

use serde_json::{Map, Value};

use crate::difference::{Leaf, Segment};
use crate::template::{containers, has_sidecar, with_sizes_of};
use crate::update::UpdateStep;

/// The step for a change of a container's resources. Source: `ValidatePodResize` of Kubernetes 1.34.
pub(crate) fn resize_step(
    leaf: &Leaf,
    wanted: &Value,
    actual: &Value,
    may_resize: bool,
) -> UpdateStep {
    let field = |position| match leaf.path.segments().get(position) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    let of_cpu_or_memory = matches!(field(4), "requests" | "limits")
        && matches!(field(5), "cpu" | "memory")
        && leaf.path.segments().len() == 6;
    if is_same_amount(leaf) {
        return UpdateStep::None;
    }
    // The apiserver lets nobody remove an amount.
    let possible = may_resize
        && of_cpu_or_memory
        && leaf.to.is_some()
        && (field(1) == "containers" || has_sidecar(wanted, leaf.path.container()))
        && quality(wanted) == quality(actual)
        && quality(&with_sizes_of(wanted, actual)) == quality(actual)
        && ![wanted, actual].into_iter().any(cannot_be_resized);
    if possible { UpdateStep::Resize } else { UpdateStep::Replace }
}

/// True if both values are the same amount, in whatever words.
pub(crate) fn is_same_amount(leaf: &Leaf) -> bool {
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

/// Resources that a living container can be resized in.
const RESIZED: [&str; 2] = ["cpu", "memory"];
const KINDS: [&str; 2] = ["limits", "requests"];

/// `resources` of a living container after a change of its template `from` → `to`: only amounts
/// that the template changes are changed.
pub fn resized(live: &Value, from: &Value, to: &Value) -> Value {
    let (from, to) = (with_requests(from), with_requests(to));
    let mut resized = live.clone();
    for kind in KINDS {
        for name in RESIZED {
            let amount = |resources: &Value| resources[kind].get(name).cloned();
            if let (before, Some(after)) = (amount(&from), amount(&to))
                && !same_amount(before.as_ref(), Some(&after))
                && !same_amount(live[kind].get(name), Some(&after))
            {
                set(&mut resized, kind, name, after);
            }
        }
    }
    resized
}

/// True if CPU and memory are in effect as the pod's spec has them, by the kubelet's report.
pub fn in_effect(spec: &Value, reported: &Value) -> bool {
    let each = KINDS.iter().flat_map(|kind| RESIZED.map(|name| (*kind, name)));
    each.into_iter().all(|(kind, name)| {
        let wanted = spec[kind].get(name);
        wanted.is_none() || same_amount(wanted, reported[kind].get(name))
    })
}

/// Adds missing requests: a request that is not given is the limit, as the apiserver makes pods.
fn with_requests(resources: &Value) -> Value {
    let mut whole = resources.clone();
    for name in RESIZED {
        let limit = resources["limits"].get(name).cloned();
        if let (Some(limit), None) = (limit, resources["requests"].get(name)) {
            set(&mut whole, "requests", name, limit);
        }
    }
    whole
}

fn set(resources: &mut Value, kind: &str, name: &str, amount: Value) {
    if !resources.is_object() {
        *resources = Value::Object(Map::new());
    }
    if !resources[kind].is_object() {
        resources[kind] = Value::Object(Map::new());
    }
    resources[kind][name] = amount;
}

/// True if both are the same amount, or neither is there.
fn same_amount(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (amount(one), amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.is_none() && other.is_none(),
    }
}

/// The number of thousandths that a quantity stands for, `1Gi` or `500m`, so that one amount in two
/// ways of writing is equal; `None` if the text is not a quantity or too large. Below a thousandth
/// it is rounded up, as Kubernetes does.
/// Source: `k8s.io/apimachinery/pkg/api/resource.Quantity`.
pub fn thousandths(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (digits, decimals) = number.split_once('.').unwrap_or((number, ""));
    let unscaled: i128 = format!("{digits}{decimals}").parse().ok()?;
    let below_one = 10i128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let (times, over) = factor(suffix)?;
    let over = over.checked_mul(below_one)?;
    let scaled = unscaled.checked_mul(times)?.checked_mul(1000)?;
    // The remainder counts as one more.
    Some(scaled.div_euclid(over) + i128::from(scaled.rem_euclid(over) != 0))
}

/// The factor of a suffix, as a fraction.
fn factor(suffix: &str) -> Option<(i128, i128)> {
    let decimal = |exponent| 10i128.checked_pow(exponent);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, decimal(9)?),
        "u" => (1, decimal(6)?),
        "m" => (1, decimal(3)?),
        "k" => (decimal(3)?, 1),
        "M" => (decimal(6)?, 1),
        "G" => (decimal(9)?, 1),
        "T" => (decimal(12)?, 1),
        "P" => (decimal(15)?, 1),
        "E" => (decimal(18)?, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = decimal(power.unsigned_abs())?;
            if power < 0 { (1, size) } else { (size, 1) }
        }
    })
}
