//! The ConfigMap with the apiserver's keys.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use stayput_certificates::Existing;
use stayput_certificates::key_set::KeySet;
use stayput_certificates::names::KEY_SET;

use super::{is_ours, metadata, precondition};

/// Path at which the apiserver names the issuer of its tokens.
pub const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";
/// Path at which the apiserver publishes its keys.
pub const KEY_SET_PATH: &str = "/openid/v1/jwks";

/// Key of the key set in the ConfigMap, and so the name of its file.
const KEYS: &str = "jwks.json";
const ISSUER: &str = "issuer";

/// The key set that managers have, from its ConfigMap.
pub fn held(map: &ConfigMap) -> Existing<KeySet> {
    let value = |key: &str| {
        let value = map.data.as_ref().and_then(|data| data.get(key));
        value.ok_or_else(|| format!("it has no {key}"))
    };
    let read = || {
        let (issuer, keys) = (value(ISSUER)?, value(KEYS)?);
        KeySet::read(issuer, keys).map_err(|error| error.to_string())
    };
    Existing { is_ours: is_ours(&map.metadata), content: read() }
}

/// The key set that the apiserver publishes, from its two answers.
///
/// # Errors
/// The answer that cannot be read, and why.
pub fn published(discovery: &str, keys: &str) -> Result<KeySet, String> {
    let discovery: Value = serde_json::from_str(discovery).unwrap_or_default();
    let issuer = discovery["issuer"].as_str();
    let issuer = issuer.ok_or_else(|| format!("{DISCOVERY_PATH} names no issuer"))?;
    KeySet::read(issuer, keys).map_err(|error| format!("what {KEY_SET_PATH} answers: {error}"))
}

/// Body of a new ConfigMap with these keys, or a merge patch of the one that was read.
pub fn key_set_object(set: &KeySet, there: Option<&ConfigMap>) -> Value {
    let data = json!({ KEYS: set.text(), ISSUER: set.issuer });
    match there {
        Some(there) => json!({ "metadata": precondition(&there.metadata), "data": data }),
        None => json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(KEY_SET), "data": data,
        }),
    }
}
