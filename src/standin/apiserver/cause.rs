//! What is wrong with a field, in the texts of the real server.

use serde_json::{Value, json};

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
