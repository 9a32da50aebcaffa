//! The init container that brings the manager's program.

use serde_json::{Value, json};

/// The user of the official images.
pub(crate) const USER: u32 = 1000;

/// What is said of the engine's user and rights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Security<'a> {
    /// The `securityContext` of the pod.
    pub(crate) pod: &'a Value,
    /// The one of the engine's container.
    pub(crate) container: &'a Value,
    /// The user of the engine's image.
    pub(crate) user: u32,
}

impl<'a> Security<'a> {
    fn field(self, name: &str) -> &'a Value {
        let own = &self.container[name];
        if own.is_null() { &self.pod[name] } else { own }
    }

    /// The user of the manager's image is root, with whom the kubelet starts no such container.
    fn needs_user(self) -> bool {
        self.field("runAsNonRoot") == true && self.field("runAsUser").is_null()
    }
}

/// Puts the manager's program into a volume of the pod.
pub(crate) fn init_container(image: &str, engine: Security<'_>) -> Value {
    let mut security = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    });
    // What PodSecurity asks of every container, if it is not said for the whole pod.
    for field in ["runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile"] {
        if !engine.container[field].is_null() {
            security[field] = engine.container[field].clone();
        }
    }
    if engine.needs_user() {
        security["runAsUser"] = json!(engine.user);
    }
    json!({
        "name": "stayput",
        "image": image,
        "args": ["install", "/shared"],
        "securityContext": security,
        "volumeMounts": [{ "name": "stayput", "mountPath": "/shared" }],
    })
}
