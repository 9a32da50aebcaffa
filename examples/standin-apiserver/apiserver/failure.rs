//! Refusals, as the `Status` objects that the real server answers.

use serde_json::{Value, json};

use super::catalog::Resource;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    reason: &'static str,
    field: String,
    /// What is wrong with it, without the field's name.
    body: String,
}

impl Cause {
    /// A field that has to be there.
    pub(super) fn required(field: impl Into<String>, note: &str) -> Self {
        let body = match note {
            "" => "Required value".to_owned(),
            note => format!("Required value: {note}"),
        };
        Self { reason: "FieldValueRequired", field: field.into(), body }
    }

    /// A field with a value it must not have.
    pub(super) fn invalid(field: impl Into<String>, value: &Value, note: &str) -> Self {
        let body = format!("Invalid value: {}: {note}", shown(value));
        Self { reason: "FieldValueInvalid", field: field.into(), body }
    }

    /// A field with a value of another type.
    pub(super) fn wrong_type(field: impl Into<String>, value: &Value, note: &str) -> Self {
        let body = format!("Invalid value: {}: {note}", shown(value));
        Self { reason: "FieldValueTypeInvalid", field: field.into(), body }
    }

    /// A field whose value is not one of the few.
    pub(super) fn unsupported(
        field: impl Into<String>,
        value: &Value,
        supported: &[Value],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(shown).collect();
        let body = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            supported.join(", ")
        );
        Self { reason: "FieldValueNotSupported", field: field.into(), body }
    }

    /// A field that must not be set or changed.
    pub(super) fn forbidden(field: impl Into<String>, note: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            body: format!("Forbidden: {note}"),
        }
    }

    /// More elements, entries or characters than there may be; `note` begins with the kind.
    pub(super) fn too_many(field: impl Into<String>, reason: &'static str, note: String) -> Self {
        Self { reason, field: field.into(), body: note }
    }

    fn document(&self) -> Value {
        json!({"reason": self.reason, "message": self.body, "field": self.field})
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => value.to_string(),
        simple => simple.to_string(),
    }
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    /// About the object `name` of `resource`.
    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = json!({"name": name, "kind": resource.plural});
        if !resource.group.is_empty() {
            self.details["group"] = json!(resource.group);
        }
        self
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    pub(super) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(super) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// A write based on a version that is not the newest.
    pub(super) fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(resource, name, why)
    }

    pub(super) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let each: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.body)).collect();
        let list = match each.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let kind = match resource.group.as_str() {
            "" => resource.kind.clone(),
            group => format!("{}.{group}", resource.kind),
        };
        let message = format!("{kind} \"{name}\" is invalid: {list}");
        let mut failure = Self::new(422, "Invalid", message).about(resource, name);
        failure.details["kind"] = json!(resource.kind);
        failure.details["causes"] = causes.iter().map(Cause::document).collect();
        failure
    }

    /// A JSON patch that cannot be applied. The real server keeps what was wrong to itself.
    pub(super) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut failure = Self::new(422, "Invalid", message);
        failure.details = json!({});
        failure
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut failure = Self::new(405, "MethodNotAllowed", message);
        failure.details = json!({});
        failure
    }

    pub(super) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message)
    }

    pub(super) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Something the real server can and this one cannot.
    pub(super) fn not_implemented(what: &str) -> Self {
        Self::new(501, "NotImplemented", format!("the stand-in apiserver cannot do this: {what}"))
    }

    /// A version that is no longer known.
    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// A version that does not exist yet.
    pub(super) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut failure = Self::new(504, "Timeout", format!("Timeout: {message}"));
        failure.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        failure
    }

    /// A failure made on purpose.
    pub(super) fn injected(code: u16) -> Self {
        let (reason, message) = match code {
            429 => ("TooManyRequests", "the server has received too many requests"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "the server was unable to return a response in the time allotted"),
            403 => ("Forbidden", "forbidden by an injected fault"),
            401 => ("Unauthorized", "Unauthorized"),
            409 => ("Conflict", "Operation cannot be fulfilled: an injected fault"),
            _ => ("InternalError", "Internal error occurred: an injected fault"),
        };
        let mut failure = Self::new(code, reason, message);
        failure.details = match code {
            429 | 503 => json!({"retryAfterSeconds": 1}),
            _ => json!({}),
        };
        failure
    }

    /// After how many seconds the client may ask again.
    pub(super) fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// The `Status` object.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
