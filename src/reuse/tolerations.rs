//! Tolerations, which a living pod may be given more of.

use serde_json::Value;

use crate::difference::Leaf;
use crate::step::UpdateStep;

/// The apiserver takes a patch that only adds tolerations.
pub(crate) fn step(leaf: &Leaf) -> UpdateStep {
    let list = |value: &Option<Value>| match value {
        Some(Value::Array(list)) => list.clone(),
        _ => vec![],
    };
    let (from, to) = (list(&leaf.from), list(&leaf.to));
    match from.iter().all(|toleration| to.contains(toleration)) {
        true if from.len() == to.len() => UpdateStep::None,
        true => UpdateStep::Relabel,
        false => UpdateStep::Replace,
    }
}
