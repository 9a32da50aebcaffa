//! HTTP requests to the manager's socket and to the engine's port.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use stayput_standin::harness::http::{Answer, exchange};

use crate::error::{Context, Result};

/// No answer may take longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends a request to the manager that listens on `socket`.
pub(crate) fn ask_manager(
    socket: &Path,
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> Result<Answer> {
    let stream = UnixStream::connect(socket)
        .and_then(|stream| stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map(|()| stream))
        .context("the manager cannot be reached")?;
    exchange(stream, (method, target), body).context(format!("{method} {target}"))
}

/// Sends a request to the engine at `address`.
pub(crate) fn ask_engine(
    address: (&str, u16),
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> Result<Answer> {
    let stream = TcpStream::connect(address)
        .and_then(|stream| stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map(|()| stream))
        .context("the engine cannot be reached")?;
    exchange(stream, (method, target), body).context(format!("{method} {target}"))
}
