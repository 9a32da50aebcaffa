//! What answers when the engine is ready.

use serde_json::Value;

use crate::edit::Path;
use crate::finding::Found;
use crate::options::Options;
use crate::pod::reached::{Reached, reached};

/// The engine's health, if it is known that it is served without TLS; otherwise its open port.
pub(super) fn url(
    options: &Options,
    at: &Path,
    container: &Value,
    found: &mut Vec<Found>,
) -> String {
    if let Some(chosen) = &options.ready {
        return chosen.clone();
    }
    let Reached { port, has_tls } = reached(container);
    if has_tls == Some(false) {
        return format!("http://127.0.0.1:{port}/_cluster/health");
    }
    found.push(Found::note(
        format!("{at}.readinessProbe"),
        format!("whether the engine has TLS is not known: it counts as ready when port {port} is open"),
        "To wait until it is in its cluster: --ready http://127.0.0.1:9200/_cluster/health, or https",
    ));
    format!("tcp://127.0.0.1:{port}")
}
