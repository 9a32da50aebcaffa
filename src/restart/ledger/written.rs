//! The JSON form of the members of a restart: one object each. Values that many members have in common, such as
//! the reason of an abort, are written once, and members refer to them by number: the ledger of
//! [`MAX_MEMBERS`](super::MAX_MEMBERS) nodes must fit into 1 MiB wherever the restart is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::Value;

use super::Member;

/// Fields of a member that are written once for all members with the same value. No value of theirs is a
/// number.
const SHARED: [&str; 4] = ["/expected", "/roles", "/ending", "/update/update"];

/// The members of a restart in JSON.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Written {
    /// By number: values that members have in common.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Value")]
    shared: BTreeMap<String, Value>,
    /// Members, with numbers for shared values, and without the name of a pod that is that of its node.
    #[schemars(with = "Value")]
    members: Vec<Value>,
}

pub(super) fn serialize<S: Serializer>(
    members: &[Member],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut written = Written::default();
    for member in members {
        let entry = serde_json::to_value(member).map_err(ser::Error::custom)?;
        let entry = written.share(entry);
        written.members.push(entry);
    }
    written.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Member>, D::Error> {
    let Written { shared, members } = Written::deserialize(deserializer)?;
    let member = |mut entry: Value| {
        for field in SHARED {
            let numbered = entry.pointer_mut(field).filter(|value| value.is_number());
            let Some(value) = numbered else { continue };
            let found = shared.get(&value.to_string()).cloned();
            *value = found.ok_or_else(|| {
                de::Error::custom(format!("{field} of a member is {value}, which is not in shared"))
            })?;
        }
        if let Some(fields) = entry.as_object_mut()
            && fields.get("pod").is_none_or(Value::is_null)
            && let Some(node) = fields.get("node").cloned()
        {
            fields.insert("pod".to_owned(), node);
        }
        serde_json::from_value(entry).map_err(de::Error::custom)
    };
    let members: Result<Vec<Member>, D::Error> = members.into_iter().map(member).collect();
    let mut members = members?;
    sort(&mut members);
    Ok(members)
}

/// The order in which members are written and read.
pub(super) fn sort(members: &mut [Member]) {
    members.sort_by(|one, other| (&one.node, &one.pod_uid).cmp(&(&other.node, &other.pod_uid)));
}

impl Written {
    /// The member, with numbers in the place of shared values.
    fn share(&mut self, mut entry: Value) -> Value {
        if let Some(fields) = entry.as_object_mut()
            && fields.get("pod") == fields.get("node")
        {
            fields.remove("pod");
        }
        for field in SHARED {
            let Some(value) = entry.pointer_mut(field) else { continue };
            let number = number_of(&value.to_string());
            let known = self.shared.entry(number.to_string()).or_insert_with(|| value.clone());
            if known == value {
                *value = number.into();
            }
        }
        entry
    }
}

/// The number of a value. It depends on nothing else (FNV-1a), so that a member that changes leaves the others
/// as they are. A value whose number another one has stays where it is.
fn number_of(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
