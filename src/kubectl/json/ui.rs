//! The JSON of `ui`.

use schemars::JsonSchema;
use serde::Serialize;

/// `ui`, before it begins to serve.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UiOutput {
    /// Where the pages are, with the token that they ask for.
    pub(crate) address: String,
}
