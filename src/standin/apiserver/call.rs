//! A parsed request: which verb on which object.

use hyper::Method;
use hyper::body::Bytes;

use super::catalog::{Catalog, Resource};
use super::failure::Failure;
use super::store::Key;

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

/// The object or objects that a path names.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) resource: Resource,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

/// A path below `/api` or `/apis`.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) group: String,
    pub(super) version: String,
    /// Empty for discovery, the list of what is served.
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

impl Address {
    /// `None` for a path of another shape.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(decode);
        let group = match parts.next()?.as_str() {
            "api" => String::new(),
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = parts.next()?;
        let mut rest: Vec<String> = parts.collect();
        // `namespaces/x/status` is about the namespace itself, `namespaces/x/pods` is about pods.
        let own = ["status", "finalize"];
        let inside = rest.len() >= 3 && rest[0] == "namespaces" && !own.contains(&rest[2].as_str());
        let namespace = inside.then(|| rest.drain(..2).nth(1)).flatten();
        let mut rest = rest.into_iter();
        let address = Self {
            group,
            version,
            plural: rest.next().unwrap_or_default(),
            namespace,
            name: rest.next(),
            subresource: rest.next(),
        };
        rest.next().is_none().then_some(address)
    }

    /// The kind and object, if that kind is served.
    pub(super) fn resolve(self, catalog: &Catalog) -> Option<Target> {
        let resource = catalog.find(&self.group, &self.version, &self.plural)?.clone();
        let misplaced = self.namespace.is_some() && !resource.namespaced;
        (!misplaced).then_some(Target {
            resource,
            namespace: self.namespace,
            name: self.name,
            subresource: self.subresource,
        })
    }
}

impl Target {
    /// Where the object is stored.
    pub(super) fn key(&self) -> Key {
        Key {
            storage: self.resource.storage.clone(),
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
        }
    }

    /// The object's name; empty if the path names none.
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Call {
    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a parameter is set to true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.parameter(name).is_some_and(|value| value == "true" || value == "1")
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            Failure::bad_request(format!("{name}: Invalid value: {text:?}: not a number"))
        })?;
        Ok(Some(number))
    }

    /// The body as JSON.
    pub(super) fn json(&self) -> Result<serde_json::Value, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::bad_request(format!("the object provided is unrecognized: {error}"))
        })
    }
}

/// `a=b&c=d`, decoded.
pub(super) fn query(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
        })
        .collect()
}

/// `%2F` and the like. Everything else stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
