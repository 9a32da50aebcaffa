//! The JSON form of [`Known`]: `{"known": …}` or `{"unknown": "message"}`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Known, Unknown};

/// The form in JSON.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Written<T> {
    /// The value that was read.
    Known(T),
    /// Why it was not read, for people.
    Unknown(String),
}

pub(super) fn serialize<T: Serialize, S: Serializer>(
    known: &Known<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match known {
        Ok(known) => Written::Known(known),
        Err(unknown) => Written::Unknown(unknown.message.clone()),
    }
    .serialize(serializer)
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Known<T>, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Known(known) => Ok(known),
        Written::Unknown(message) => Err(Unknown { message }),
    })
}
