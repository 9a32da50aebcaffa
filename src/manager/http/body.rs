//! Reads request bodies: limited in size and time, one JSON object.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};
use tokio::time::timeout;

use stayput_api::Code;
use stayput_api::Refusal;

/// The largest body in bytes; the bodies of our clients are a tenth of it.
pub(super) const MAX_BODY: usize = 16 * 1024;

/// Reads the whole body within `limit`.
///
/// # Errors
/// Too large, too slow, or cut off. The connection cannot be used again after that.
pub(super) async fn read(body: Incoming, limit: Duration) -> Result<Bytes, Refusal> {
    let too_large = || {
        Refusal::new(
            Code::BodyTooLarge,
            format!("the body is larger than {MAX_BODY} bytes: send less"),
        )
    };
    // The announced length is enough to refuse: no byte is read.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    match timeout(limit, Limited::new(body, MAX_BODY).collect()).await {
        Err(_) => Err(Refusal::new(
            Code::RequestTimeout,
            format!(
                "the body did not arrive within {}: send it at once",
                humantime::format_duration(limit)
            ),
        )),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            Err(Refusal::new(Code::InvalidBody, "the body was cut off: send the whole of it"))
        }
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}

/// Reads the request out of a body; an empty one stands for `{}`.
///
/// # Errors
/// Names the field that is unknown or of the wrong type.
pub(super) fn parse<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Refusal> {
    let body = body.trim_ascii();
    if body.is_empty() {
        return Ok(T::default());
    }
    // Checked here, because serde accepts an array as a struct's fields in their order.
    if !body.starts_with(b"{") {
        return Err(refuse("the body is not a JSON object such as {\"sequence\": 7}".to_owned()));
    }
    let request = serde_json::from_slice(body).map_err(|error| {
        let alone = |field| serde_json::from_value::<T>(field).map(drop);
        refuse(
            field_at_fault(body, &alone)
                .unwrap_or_else(|| format!("the body cannot be read: {error}")),
        )
    })?;
    // Also in a journal there are requests, and a newer manager's may have other fields: only who
    // sends one is told that it would have no effect.
    match unknown_field(body, fields_of::<T>()) {
        Some(message) => Err(refuse(message)),
        None => Ok(request),
    }
}

fn unknown_field(body: &[u8], known: &[&str]) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let name = fields.keys().find(|name| !known.contains(&name.as_str()))?;
    Some(format!("field {name:?} is unknown; the fields are: {}", known.join(", ")))
}

/// The names of a request's fields.
fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // Nothing is read, which is an error.
    let _ = T::deserialize(FieldNames(&mut fields));
    fields
}

/// Takes the names that a struct asks for.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = NoValue;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, NoValue> {
        Err(NoValue::custom("there is nothing to read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Finds the field of the wrong type: serde names only doubled fields, so each field is tried
/// alone. `None` if the body is no JSON at all.
fn field_at_fault(
    body: &[u8],
    read: &dyn Fn(Value) -> Result<(), serde_json::Error>,
) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
    fields.into_iter().find_map(|(name, value)| {
        let mut alone = Map::new();
        alone.insert(name.clone(), value);
        let error = read(Value::Object(alone)).err()?;
        Some(format!("field {name:?}: {error}"))
    })
}

fn refuse(message: String) -> Refusal {
    // It repeats what was sent, so its length is limited.
    Refusal::new(Code::InvalidBody, message.chars().take(300).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use stayput_api::{ConfigChoice, DrainRequest, StartRequest, StopRequest, UpgradeRequest};

    #[test]
    fn empty_bodies_stand_for_an_empty_object() {
        for body in [&b""[..], b" \r\n", b"{}"] {
            assert_eq!(parse::<StopRequest>(body), Ok(StopRequest::default()));
        }
        let start = parse::<StartRequest>(br#"{"sequence":7,"config":"last_good"}"#).unwrap();
        assert_eq!((start.sequence, start.config), (Some(7), ConfigChoice::LastGood));
    }

    #[test]
    fn every_refusal_names_the_field() {
        for (body, part) in [
            (r#"{"sequenc":7}"#, "sequenc"),
            (r#"{"sequence":"7"}"#, "sequence"),
            (r#"{"sequence":-1}"#, "sequence"),
            (r#"{"sequence":7.5}"#, "sequence"),
            (r#"{"pod":7}"#, "pod"),
            (r#"{"grace":"soon"}"#, "grace"),
            (r#"{"grace":"2days"}"#, "grace"),
            (r#"{"sequence":1,"sequence":2}"#, "sequence"),
            (r#"{"checksum":"a"}"#, "checksum"),
            ("[7]", "object"),
            ("7", "object"),
            (r#"{"sequence":null}"#, "sequence"),
            (r#"{"pod":""}"#, "pod"),
            (r#"{"pod":"u-1\u001b[2J"}"#, "pod"),
            (&format!("{{\"pod\":{:?}}}", "u".repeat(254)), "pod"),
            ("{", "body"),
            ("{} {}", "body"),
        ] {
            let refusal = parse::<StopRequest>(body.as_bytes()).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidBody);
            assert!(refusal.message.contains(part), "{body}: {refusal:?}");
            assert!(refusal.message.len() < 1000);
        }
    }

    #[test]
    fn a_start_is_refused_for_what_cannot_be_a_checksum_or_a_config() {
        for (body, part) in [
            (r#"{"checksum":"sha256:a"}"#, "field \"checksum\": \"sha256:a\" is not a config"),
            (r#"{"checksum":"\u001b"}"#, "field \"checksum\": \"\\u{1b}\" is not"),
            (r#"{"checksum":null}"#, "field \"checksum\""),
            (r#"{"config":null}"#, "field \"config\""),
            (r#"{"config":"moon"}"#, "field \"config\""),
        ] {
            let refusal = parse::<StartRequest>(body.as_bytes()).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidBody);
            assert!(refusal.message.starts_with(part), "{body}: {refusal:?}");
        }
    }

    #[test]
    fn an_unknown_field_is_refused_in_every_body() {
        fn refusal<T: DeserializeOwned + Default + std::fmt::Debug>() -> String {
            parse::<T>(br#"{"later": 1}"#).unwrap_err().message
        }
        assert_eq!(
            refusal::<StopRequest>(),
            "field \"later\" is unknown; the fields are: sequence, pod, grace, drain, resumeAfter, \
             resumeChecksum, exit"
        );
        for refusal in
            [refusal::<StartRequest>(), refusal::<DrainRequest>(), refusal::<UpgradeRequest>()]
        {
            assert!(refusal.starts_with("field \"later\" is unknown"), "{refusal}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_body_makes_it_panic(body: Vec<u8>, text: String) {
            let _ = parse::<StartRequest>(&body);
            let _ = parse::<StartRequest>(format!("{{{text}}}").as_bytes());
            let _ = parse::<StopRequest>(format!("{{\"grace\":{text:?}}}").as_bytes());
        }
    }
}
