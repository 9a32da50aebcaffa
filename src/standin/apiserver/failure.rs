//! Refusals, as the `Status` objects that the real server answers, and what is wrong with a field, in its
//! texts.

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

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    /// A failure about the object `name` of `resource`.
    fn about(self, resource: &Resource, name: &str) -> Self {
        self.about_kind(&resource.group, &resource.plural, name)
    }

    fn about_kind(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = json!({"kind": kind});
        for (field, value) in [("name", name), ("group", group)] {
            if !value.is_empty() {
                self.details[field] = json!(value);
            }
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

    pub(super) fn conflict(resource: &Resource, name: &str, reason: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {reason}",
            resource.qualified()
        );
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// A write based on a version that is not the newest.
    pub(super) fn modified(resource: &Resource, name: &str) -> Self {
        let reason = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(resource, name, reason)
    }

    /// A deletion on a condition that does not hold; here the real server names the kind.
    pub(super) fn precondition(resource: &Resource, name: &str, reason: &str) -> Self {
        let qualified = qualified(&resource.group, &resource.kind);
        let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {reason}");
        Self::new(409, "Conflict", message).about_kind(&resource.group, &resource.kind, name)
    }

    pub(super) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_kind(&resource.group, &resource.kind, name, causes)
    }

    /// Options of a request that exclude each other.
    pub(super) fn invalid_options(kind: &str, cause: Cause) -> Self {
        Self::invalid_kind("meta.k8s.io", kind, "", &[cause])
    }

    /// The same for an object that is not stored here.
    pub(super) fn invalid_kind(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let each: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.body)).collect();
        let list = match each.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {list}", qualified(group, kind));
        let mut failure = Self::new(422, "Invalid", message).about_kind(group, kind, name);
        failure.details["causes"] = causes.iter().map(Cause::document).collect();
        failure
    }

    /// A JSON patch that cannot be applied. The real server does not report what was wrong.
    pub(super) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut failure = Self::new(422, "Invalid", message);
        failure.details = json!({});
        failure
    }

    /// An error for which the real server sends no reason.
    pub(super) fn unforeseen(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// An unknown path in a served group.
    pub(super) fn unknown_resource() -> Self {
        let mut failure =
            Self::new(404, "NotFound", "the server could not find the requested resource");
        failure.details = json!({});
        failure
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn forbidden(resource: &Resource, name: &str, reason: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {reason}", resource.qualified());
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

    /// `accepted` is empty for a patch of what is built in, where the real server does not list them.
    pub(super) fn unsupported_media_type(accepted: &[&str]) -> Self {
        if accepted.is_empty() {
            let message = "415: Unsupported Media Type";
            let mut failure = Self::new(415, "UnsupportedMediaType", message);
            failure.details = json!({});
            return failure;
        }
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A feature of the real server that this one lacks.
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

    /// An injected fault.
    pub(super) fn injected(code: u16) -> Self {
        let (reason, message) = match code {
            429 => ("TooManyRequests", "the server has received too many requests"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "the server was unable to return a response in the time allotted"),
            403 => {
                ("Forbidden", "forbidden by an injected fault: User \"stand-in\" cannot do this")
            }
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

    /// What admission refuses, in its own words.
    pub(super) fn denied(code: u16, message: &str) -> Self {
        if code != 422 {
            return Self::new(code, "Forbidden", message);
        }
        // An object that is invalid is named.
        let mut failure = Self::new(code, "Invalid", message);
        failure.details = json!({"name": "denied"});
        failure
    }

    /// After how many seconds the client may try again.
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
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

fn qualified(group: &str, kind: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{kind}.{group}"),
    }
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    reason: &'static str,
    pub(super) field: String,
    /// What is wrong with it, without the field's name.
    pub(super) body: String,
}

impl Cause {
    /// A required field is missing.
    pub(super) fn required(field: impl Into<String>, note: &str) -> Self {
        let body = match note {
            "" => "Required value".to_owned(),
            note => format!("Required value: {note}"),
        };
        Self { reason: "FieldValueRequired", field: field.into(), body }
    }

    /// A field has an invalid value.
    pub(super) fn invalid(field: impl Into<String>, value: &Value, note: &str) -> Self {
        let body = format!("Invalid value: {}: {note}", value);
        Self { reason: "FieldValueInvalid", field: field.into(), body }
    }

    /// A field with a value of another type.
    pub(super) fn wrong_type(field: impl Into<String>, value: &Value, note: &str) -> Self {
        let body = format!("Invalid value: {}: {note}", value);
        Self { reason: "FieldValueTypeInvalid", field: field.into(), body }
    }

    /// A field's value is not one of the allowed ones.
    pub(super) fn unsupported(
        field: impl Into<String>,
        value: &Value,
        supported: &[Value],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(Value::to_string).collect();
        let body =
            format!("Unsupported value: {}: supported values: {}", value, supported.join(", "));
        Self { reason: "FieldValueNotSupported", field: field.into(), body }
    }

    /// The list has this element already.
    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let body = format!("Duplicate value: {value}");
        Self { reason: "FieldValueDuplicate", field: field.into(), body }
    }

    /// A field must not be set or changed.
    pub(super) fn forbidden(field: impl Into<String>, note: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            body: format!("Forbidden: {note}"),
        }
    }

    /// More elements, entries or characters than allowed; `note` begins with their kind.
    pub(super) fn too_many(field: impl Into<String>, reason: &'static str, note: String) -> Self {
        Self { reason, field: field.into(), body: note }
    }

    /// As `details.causes` has it.
    pub(super) fn document(&self) -> Value {
        json!({"reason": self.reason, "message": self.body, "field": self.field})
    }
}
