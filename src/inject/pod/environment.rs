//! The manager's settings.

use serde_json::{Value, json};

use super::ready::Ready;

/// Settings of the manager that differ from pod to pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Environment<'a> {
    /// Mount path of the engine's config.
    pub(crate) config: Option<&'a str>,
    /// Directory to which the manager copies the config, unless somebody else brings it there.
    pub(crate) stage: Option<&'a str>,
    pub(crate) ready: &'a Ready,
    /// Grace period of the kubelet, in seconds.
    pub(crate) grace: Option<i64>,
    /// True if metrics need no credentials.
    pub(crate) open_metrics: bool,
}

/// The variables of `stayput run`.
pub(crate) fn environment(of: &Environment<'_>) -> Vec<Value> {
    let value = |name: &str, value: &str| json!({ "name": name, "value": value });
    let issuer = json!({ "configMapKeyRef": { "name": "cluster-jwks", "key": "issuer" } });
    let subject = "system:serviceaccount:stayput:stayput-reconciler=es:read es:control";
    let mut all = vec![
        value("STAYPUT_LISTEN", ":9199"),
        value("STAYPUT_SOCKET", "/stayput-state/stayput.sock"),
        value("STAYPUT_STATE_DIR", "/stayput-state"),
        value("STAYPUT_TLS_CERT", "/stayput-tls/tls.crt"),
        value("STAYPUT_TLS_KEY", "/stayput-tls/tls.key"),
        value("STAYPUT_JWKS", "/stayput-jwks/jwks.json"),
        json!({ "name": "STAYPUT_JWT_ISSUER", "valueFrom": issuer }),
        value("STAYPUT_ALLOW_SUBJECT", subject),
    ];
    all.extend(of.config.map(|config| value("STAYPUT_CONFIG", config)));
    if let (Some(config), Some(stage)) = (of.config, of.stage) {
        all.push(value("STAYPUT_STAGE", &format!("{config}={stage}")));
        // A config that was up for a minute is kept; with it the engine comes back if the next one is
        // wrong.
        all.push(value("STAYPUT_KEEP_LAST_GOOD", "true"));
        // After a crash the engine runs on what it ran on before, not on a config that nobody has
        // asked for yet.
        all.push(value("STAYPUT_PIN_CONFIG", "true"));
    }
    all.extend(of.ready.variables());
    // Shorter than the kubelet's, so that the thread dump comes before its KILL.
    let grace = of.grace.map(|grace| format!("{}s", grace - 10));
    all.extend(grace.map(|grace| value("STAYPUT_TERMINATION_GRACE", &grace)));
    all.extend(of.open_metrics.then(|| value("STAYPUT_OPEN_METRICS", "true")));
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    all.extend([
        field("STAYPUT_POD_NAMESPACE", "metadata.namespace"),
        field("STAYPUT_POD_NAME", "metadata.name"),
        field("STAYPUT_POD_UID", "metadata.uid"),
    ]);
    all
}
