//! One request, from its path to its answer; and which verb on which object it is.

use std::io;
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Bytes;
use hyper::{Method, Response, StatusCode, header};
use serde_json::{Value, json};

use super::catalog::{Catalog, Resource};
use super::failure::Failure;
use super::kinds::Part;
use super::object::Shape;
use super::selector::Selector;
use super::store::{Key, Watcher};
use super::token::ISSUER;
use super::verbs::{Deleted, Page, Patch, State, Writing, Written};
use super::{Shared, VERSION};

/// Where it is asked who may do what.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The body that hyper sends.
pub(super) type Reply = Response<BoxBody<Bytes, io::Error>>;

/// The verb and the resource of a call, as audit logs name them.
pub(super) fn name(call: &Call) -> (&'static str, String) {
    let address = Address::parse(&call.path).filter(|address| !address.plural.is_empty());
    let Some(address) = address else { return ("get", call.path.clone()) };
    let resource = match &address.subresource {
        Some(subresource) => format!("{}/{subresource}", address.plural),
        None => address.plural,
    };
    let one = address.name.is_some();
    let verb = match call.method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if one => "delete",
        Method::DELETE => "deletecollection",
        _ if call.flag("watch") => "watch",
        _ if one => "get",
        _ => "list",
    };
    (verb, resource)
}

/// Answers one call.
pub(super) fn answer(shared: &Arc<Shared>, call: &Call) -> Reply {
    match objects(shared, call).or_else(|failure| failure.map_or_else(|| other(shared, call), Err))
    {
        Ok(reply) => reply,
        Err(failure) => refusal(&failure),
    }
}

/// A `Status` object.
pub(super) fn refusal(failure: &Failure) -> Reply {
    let mut reply = document(failure.code, &failure.status());
    if let Some(seconds) = failure.retry_after() {
        reply.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    reply
}

fn document(code: u16, body: &Value) -> Reply {
    text(code, "application/json", format!("{body}\n"))
}

fn text(code: u16, kind: &'static str, body: String) -> Reply {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed();
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    reply
}

/// Paths that are not about objects.
fn other(shared: &Arc<Shared>, call: &Call) -> Result<Reply, Failure> {
    if call.method == Method::POST && call.path.trim_end_matches('/') == REVIEWS {
        // There is no authorization: everybody may do everything.
        let mut review = call.json()?;
        review["status"] = json!({"allowed": true});
        return Ok(document(201, &review));
    }
    if call.method != Method::GET && call.method != Method::HEAD {
        return Err(Failure::method_not_allowed());
    }
    let state = shared.state();
    let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
    let found = match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => {
            return Ok(text(200, "text/plain", "ok".to_owned()));
        }
        ["version"] => Some(json!({
            "major": "1", "minor": "34", "gitVersion": VERSION, "platform": "stand-in",
        })),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
        })),
        ["api", version] => state.catalog.resources_of("", version),
        ["apis"] => Some(state.catalog.groups()),
        ["apis", group] => state.catalog.group(group),
        ["apis", group, version] => state.catalog.resources_of(group, version),
        ["openapi", "v3"] => Some(state.catalog.openapi_index()),
        ["openapi", "v3", rest @ ..] => state.catalog.openapi_of(&rest.join("/")),
        ["openid", "v1", "jwks"] => {
            let keys = shared.signer().key_set().to_string();
            return Ok(text(200, "application/jwk-set+json", keys));
        }
        [".well-known", "openid-configuration"] => Some(json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{}/openid/v1/jwks", shared.url),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })),
        _ => None,
    };
    Ok(match found {
        Some(found) => document(200, &found),
        None => text(404, "text/plain; charset=utf-8", "404 page not found\n".to_owned()),
    })
}

/// Paths about objects; `Err(None)` if it is none.
fn objects(shared: &Arc<Shared>, call: &Call) -> Result<Reply, Option<Failure>> {
    let address = Address::parse(&call.path).filter(|address| !address.plural.is_empty());
    let address = address.ok_or(None)?;
    let is_ours = shared.state().catalog.is_builtin(&address.group);
    let target = address.resolve(&shared.state().catalog);
    let target = target.ok_or_else(|| is_ours.then(Failure::unknown_resource))?;
    let part = match (target.subresource.as_deref(), &target.name) {
        (None, _) => Part::Main,
        (Some("status"), Some(_)) if target.resource.status => Part::Status,
        (Some("resize"), Some(_)) if target.resource.storage == "pods" => Part::Resize,
        (Some("token"), Some(_)) if target.resource.storage == "serviceaccounts" => {
            return Ok(token(shared, call, &target)?);
        }
        _ if is_ours => return Err(Some(Failure::unknown_resource())),
        _ => return Err(Some(Failure::not_found(&target.resource, target.name()))),
    };
    let shape = Shape::parse(&call.accept)?;
    let reply = match (&call.method, target.name.is_some()) {
        (&Method::GET, _) if call.flag("watch") => watch(shared, call, target, shape),
        (&Method::GET, true) => {
            let object = shared.state().get(&target)?;
            Ok(document(200, &shape.object(&target.resource, &object)))
        }
        (&Method::GET, false) => {
            let (selector, page) = (selector(call, &target)?, Page::parse(call)?);
            Ok(document(200, &shared.state().list(&target, &selector, &page, shape)?))
        }
        (&Method::DELETE, one) if part == Part::Main => delete(shared, call, &target, one),
        _ => write(shared, call, &target, part).map(|written| {
            let code = if written.created { 201 } else { 200 };
            document(code, &shape.object(&target.resource, &written.object))
        }),
    };
    Ok(reply?)
}

fn selector(call: &Call, target: &Target) -> Result<Selector, Failure> {
    let (labels, fields) = (call.parameter("labelSelector"), call.parameter("fieldSelector"));
    Selector::parse(&target.resource, labels, fields)
}

fn watch(
    shared: &Arc<Shared>,
    call: &Call,
    target: Target,
    shape: Shape,
) -> Result<Reply, Failure> {
    let selector = selector(call, &target)?;
    let watcher = Watcher::begin(shared, call, target, selector, shape)?;
    let mut reply = Response::new(BodyExt::boxed(StreamBody::new(watcher.frames())));
    let kind = header::HeaderValue::from_static("application/json");
    reply.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(reply)
}

fn write(
    shared: &Arc<Shared>,
    call: &Call,
    target: &Target,
    part: Part,
) -> Result<Written, Failure> {
    let options = match call.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => return Err(Failure::method_not_allowed()),
    };
    let writing = Writing::parse(call, options)?;
    let mut state = shared.state();
    let homeless = target.resource.namespaced && target.namespace.is_none();
    let written = match (&call.method, &target.name) {
        (&Method::POST, None) if !homeless => {
            is_json(call)?;
            state.create(target, call.json()?, writing)
        }
        (&Method::PUT, Some(_)) => {
            is_json(call)?;
            state.replace(target, call.json()?, part, writing)
        }
        (&Method::PATCH, Some(_)) => {
            let patch = Patch::parse(call, target)?;
            state.patch(target, patch, part, writing)
        }
        (&(Method::PUT | Method::PATCH), None) if target.resource.schema().is_some() => {
            Err(Failure::bad_request("name must be provided"))
        }
        _ => Err(Failure::method_not_allowed()),
    }?;
    shared.written(&state);
    Ok(written)
}

fn is_json(call: &Call) -> Result<(), Failure> {
    match call.content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => Ok(()),
        _ => Err(Failure::unsupported_media_type(&["application/json"])),
    }
}

fn delete(shared: &Arc<Shared>, call: &Call, target: &Target, one: bool) -> Result<Reply, Failure> {
    // With a body the query does not count.
    let (options, writing) = if call.body.is_empty() {
        let seconds = call.number("gracePeriodSeconds")?;
        let options = json!({"gracePeriodSeconds": seconds});
        (options, Writing::parse(call, "DeleteOptions")?)
    } else {
        let options = call.json()?;
        let writing = Writing::of_deletion(&options);
        (options, writing)
    };
    let mut state = shared.state();
    let reply = if one {
        let deleted = state.delete(target, &options, writing)?;
        Ok(document(200, &deletion(&target.resource, deleted)))
    } else {
        delete_all(&mut state, call, target, &options, writing)
    };
    shared.written(&state);
    reply
}

fn delete_all(
    state: &mut State,
    call: &Call,
    target: &Target,
    options: &Value,
    writing: Writing,
) -> Result<Reply, Failure> {
    let (selector, page) = (selector(call, target)?, Page::parse(call)?);
    let list = state.list(target, &selector, &page, Shape::Whole)?;
    for item in list["items"].as_array().into_iter().flatten() {
        let text = |field: &str| item["metadata"][field].as_str().map(str::to_owned);
        let one = Target { name: text("name"), namespace: text("namespace"), ..target.clone() };
        state.delete(&one, options, writing)?;
    }
    Ok(document(200, &list))
}

fn deletion(resource: &super::catalog::Resource, deleted: Deleted) -> Value {
    let object = match deleted {
        Deleted::Marked(object) => return resource.encode(&object),
        Deleted::Gone(object) if resource.returns_deleted() => return resource.encode(&object),
        Deleted::Gone(object) => object,
    };
    let mut details = json!({
        "name": object["metadata"]["name"],
        "kind": resource.plural,
        "uid": object["metadata"]["uid"],
    });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

fn token(shared: &Arc<Shared>, call: &Call, target: &Target) -> Result<Reply, Failure> {
    if call.method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let request = call.json()?;
    let issued = shared.signer().issue(&shared.state(), target, request)?;
    Ok(document(201, &issued))
}

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
struct Address {
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
