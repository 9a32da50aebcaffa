//! The init container that brings the manager's program.

use serde_json::{Value, json};

use crate::finding::ObjectIssue;
use crate::options::Options;

/// CPU for copying a file of 5 MB.
const CPU: &str = "100m";
const MEMORY: &str = "64Mi";

/// The user id of the official images.
pub(crate) const USER: u32 = 1000;

/// User, rights and resources of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineFacts<'a> {
    /// The `securityContext` of the pod.
    pub(crate) pod: &'a Value,
    /// The `securityContext` of the engine's container.
    pub(crate) container: &'a Value,
    /// The `resources` of the engine's container.
    pub(crate) resources: &'a Value,
    /// The user id of the engine's image.
    pub(crate) user: u32,
}

impl<'a> EngineFacts<'a> {
    fn field(self, name: &str) -> &'a Value {
        let own = &self.container[name];
        if own.is_null() { &self.pod[name] } else { own }
    }

    /// True if the pod must not run as root and no user is given. The user of the manager's image is
    /// root, with whom the kubelet starts no such container.
    fn needs_user(self) -> bool {
        self.field("runAsNonRoot") == true && self.field("runAsUser").is_null()
    }

    /// A note for clusters that give each pod its user by themselves.
    pub(crate) fn note(self, field: &str, options: &Options) -> Option<ObjectIssue> {
        (self.needs_user() && !options.assigned_user).then(|| {
            ObjectIssue::note(
                field,
                format!(
                    "no user is given, so the init container gets that of the image, {}; OpenShift refuses it",
                    self.user
                ),
                "Where the cluster gives each pod its user: --assigned-user",
            )
        })
    }
}

/// The init container that puts the manager's program into a volume of the pod.
pub(crate) fn init_container(options: &Options, engine: EngineFacts<'_>) -> Value {
    let mut security = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    });
    // What PodSecurity asks of every container, if it is not said for the whole pod; and the label by which
    // the engine may read the program.
    for field in ["runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile", "seLinuxOptions"] {
        if !engine.container[field].is_null() {
            security[field] = engine.container[field].clone();
        }
    }
    if engine.needs_user() && !options.assigned_user {
        security["runAsUser"] = json!(engine.user);
    }
    let mut init = json!({
        "name": "stayput",
        "image": options.image(),
        "args": ["install", "/shared"],
        "securityContext": security,
        "volumeMounts": [{ "name": "stayput", "mountPath": "/shared" }],
    });
    for field in ["limits", "requests"] {
        if !engine.resources[field].is_null() {
            init["resources"][field] = sizes(&engine.resources[field]);
        }
    }
    init
}

/// Resources of the init container. A quota refuses a pod with a container that has none, and without
/// limits the pod would no longer be `Guaranteed`. CPU and memory do not follow the engine's: the pod
/// would take the room of its first size for as long as it lives.
fn sizes(engines: &Value) -> Value {
    let mut sizes = engines.clone();
    for (resource, amount) in [("cpu", CPU), ("memory", MEMORY)] {
        if !sizes[resource].is_null() {
            sizes[resource] = json!(amount);
        }
    }
    sizes
}
