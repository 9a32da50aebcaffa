//! Signed tokens of service accounts, and the public key to verify them with.

use std::time::Duration;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::Target;
use super::catalog::Resource;
use super::failure::{Cause, Failure};
use super::object::{meta, seconds, timestamp, uid};
use super::store::Key;
use super::verbs::State;

/// The issuer in the tokens.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const DEFAULT_SECONDS: i64 = 3600;
const LEAST_SECONDS: i64 = 600;
const MOST_SECONDS: i64 = 1 << 32;

/// The key that tokens are signed with, different for every server.
#[derive(Debug)]
pub(super) struct Signer {
    key: EcdsaKeyPair,
    id: String,
}

impl Signer {
    pub(super) fn new() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a new key");
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        let key = key.expect("the key that was just made");
        let id = base64url(&Sha256::digest(key.public_key().as_ref()));
        Self { key, id }
    }

    /// The key set (RFC 7517) that tokens can be verified with.
    pub(super) fn key_set(&self) -> Value {
        // An uncompressed point: 4, then both coordinates.
        let point = self.key.public_key().as_ref();
        json!({"keys": [{
            "use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": self.id,
            "x": base64url(&point[1..33]), "y": base64url(&point[33..65]),
        }]})
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": self.id});
        let encode = |value: &Value| base64url(value.to_string().as_bytes());
        let message = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes());
        let signature = signature.expect("the system has random numbers");
        format!("{message}.{}", base64url(signature.as_ref()))
    }

    /// Answers a `TokenRequest` for the service account of `target`.
    pub(super) fn issue(
        &self,
        state: &State,
        target: &Target,
        mut request: Value,
    ) -> Result<Value, Failure> {
        let account = state.get(target)?;
        let spec = &request["spec"];
        let lifetime = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
        check_lifetime(&target.resource, lifetime)?;
        let audiences = match spec["audiences"].as_array() {
            Some(audiences) if !audiences.is_empty() => json!(audiences),
            _ => json!([ISSUER]),
        };
        let namespace = meta(&account, "namespace");
        let name = meta(&account, "name");
        let mut about = json!({
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": meta(&account, "uid")},
        });
        let bound = &spec["boundObjectRef"];
        if bound.is_object() {
            bind(state, namespace, name, bound, &mut about)?;
        }
        let now = seconds();
        let claims = json!({
            "iss": ISSUER,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "aud": audiences,
            "jti": uid(),
            "iat": now,
            "nbf": now,
            "exp": now + lifetime.unsigned_abs(),
            "kubernetes.io": about,
        });
        request["kind"] = json!("TokenRequest");
        request["apiVersion"] = json!("authentication.k8s.io/v1");
        request["metadata"] = json!({
            "name": name, "namespace": namespace, "creationTimestamp": timestamp(Duration::ZERO),
        });
        request["spec"]["audiences"] = audiences;
        request["spec"]["expirationSeconds"] = json!(lifetime);
        request["status"] = json!({
            "token": self.sign(&claims),
            "expirationTimestamp": timestamp(Duration::from_secs(lifetime.unsigned_abs())),
        });
        Ok(request)
    }
}

fn check_lifetime(resource: &Resource, lifetime: i64) -> Result<(), Failure> {
    let note = match lifetime {
        ..LEAST_SECONDS => "may not specify a duration less than 10 minutes",
        LEAST_SECONDS..=MOST_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = Cause::invalid("spec.expirationSeconds", &json!(lifetime), note);
    let request = Resource {
        kind: "TokenRequest".to_owned(),
        group: "authentication.k8s.io".to_owned(),
        ..resource.clone()
    };
    Err(Failure::invalid(&request, "", &[cause]))
}

/// Binds the token to a pod or a Secret; it is not valid longer than that exists.
fn bind(
    state: &State,
    namespace: &str,
    account: &str,
    bound: &Value,
    about: &mut Value,
) -> Result<(), Failure> {
    let name = bound["name"].as_str().unwrap_or_default();
    let (plural, claim) = match bound["kind"].as_str().unwrap_or_default() {
        "Pod" => ("pods", "pod"),
        "Secret" => ("secrets", "secret"),
        other => {
            let message = format!("cannot bind token to object of type {other}");
            return Err(Failure::bad_request(message));
        }
    };
    let resource = state.catalog.find("", "v1", plural).expect("built in");
    let key =
        Key { storage: plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() };
    let object = state.store.get(&key).ok_or_else(|| Failure::not_found(resource, name))?;
    if plural == "pods" {
        let own = object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
        if own != account {
            return Err(Failure::bad_request(format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different \
                 serviceaccount name."
            )));
        }
    }
    let (uid, actual) = (bound["uid"].as_str().unwrap_or_default(), meta(object, "uid"));
    if !uid.is_empty() && uid != actual {
        let reason = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(Failure::conflict(resource, name, &reason));
    }
    about[claim] = json!({"name": name, "uid": actual});
    Ok(())
}

/// The encoding of JWTs: base64 without padding, safe in URLs.
fn base64url(bytes: &[u8]) -> String {
    let text = json!(k8s_openapi::ByteString(bytes.to_vec()));
    let text = text.as_str().unwrap_or_default();
    text.trim_end_matches('=').replace('+', "-").replace('/', "_")
}
