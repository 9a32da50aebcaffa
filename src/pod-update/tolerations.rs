//! Tolerations, which a living pod may be given more of.

use serde_json::Value;

use crate::difference::Leaf;
use crate::step::UpdateStep;

/// The step for a change of tolerations: the apiserver takes a patch that only adds tolerations.
pub(crate) fn step(leaf: &Leaf) -> UpdateStep {
    let list = |value: &Option<Value>| match value {
        Some(Value::Array(list)) => list.clone(),
        _ => vec![],
    };
    let (from, to) = (list(&leaf.from), list(&leaf.to));
    let has_all =
        |list: &[Value], of: &[Value]| of.iter().all(|toleration| list.contains(toleration));
    if !has_all(&to, &from) {
        UpdateStep::Replace
    } else if !has_all(&from, &to) {
        UpdateStep::Relabel
    } else {
        UpdateStep::None
    }
}
