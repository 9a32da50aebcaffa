//! The roles that a set's config gives to its nodes.

use stayput_pod_update::Settings;

use crate::NodeSet;

/// Roles on which the order of work and the refusals depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roles {
    /// True if nodes are master-eligible.
    pub(crate) master: bool,
    /// True if nodes hold shards.
    pub(crate) data: bool,
}

/// The settings of a set by their full names, however they are nested.
pub(crate) fn settings(set: &NodeSet) -> Settings {
    stayput_pod_update::settings(&serde_json::Value::Object(set.config.clone()))
}

/// The roles that a set's config gives. Without a setting a node has all roles. `node.master` and
/// `node.data` are the old way.
pub(crate) fn roles(set: &NodeSet) -> Roles {
    let settings = settings(set);
    if let Some(written) = settings.get("node.roles") {
        let has = |wanted: fn(&str) -> bool| written.split(',').any(|role| wanted(role.trim()));
        return Roles {
            master: has(|role| role == "master" || role == "cluster_manager"),
            data: has(|role| role.starts_with("data")),
        };
    }
    let unless_off = |name: &str| settings.get(name).is_none_or(|value| value != "false");
    Roles { master: unless_off("node.master"), data: unless_off("node.data") }
}
