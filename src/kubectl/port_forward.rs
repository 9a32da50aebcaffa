//! A port that kubectl forwards to the reconciler's leader, as long as it is needed. kubectl is
//! installed, since this is its plugin, and it finds credentials and proxies as the user has set
//! them up.

#![expect(
    clippy::disallowed_types,
    reason = "a program of its own, which waits for no child but this one"
)]

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;
use tokio::time::timeout;

use crate::apiserver::ApiError;
use crate::error::Exit;
use crate::leader::{NAMESPACE, lease, why_none};
use crate::session::Session;

/// Port of the reconciler's snapshots, on its loopback interface.
const PORT: u16 = 9198;
/// Timeout for kubectl to connect.
const LONGEST: Duration = Duration::from_secs(30);
/// Timeout for the error message of a kubectl that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Text that kubectl prints before the port, once it listens.
const LISTENS: &str = "Forwarding from 127.0.0.1:";

/// Why no port is forwarded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(
        "{0}; see `kubectl -n {NAMESPACE} get pods`, or give the address of a port that you forward \
         with --reconciler URL"
    )]
    NoLeader(String),
    #[error("cannot run kubectl, which forwards the reconciler's port: {0}; is it in PATH?")]
    NoKubectl(#[source] std::io::Error),
    #[error(
        "kubectl does not forward the port of the reconciler {pod}: {message}; you need create on \
         pods/portforward and get on pods in namespace {NAMESPACE}"
    )]
    Refused { pod: String, message: String },
    #[error("kubectl has not connected to the reconciler {pod} within {} s", LONGEST.as_secs())]
    TimedOut { pod: String },
    #[error("the output of kubectl cannot be read: {0}")]
    Unread(#[from] RecvError),
}

impl ForwardError {
    pub(crate) fn exit(&self) -> Exit {
        if let Self::Api(error) = self { error.into() } else { Exit::NotReachable }
    }
}

/// Forwards the port until this is dropped.
pub(crate) struct PortForward {
    port: u16,
    _kubectl: Kubectl,
    /// kubectl's stdout. kubectl ends if nobody can read its output.
    _output: BufReader<ChildStdout>,
}

impl PortForward {
    /// Has kubectl forward a free local port to the reconciler that holds the Lease.
    pub(crate) async fn open(session: &Session) -> Result<Self, ForwardError> {
        let pod = leader(session).await?;
        let (mut kubectl, output) = Kubectl::start(session.kubectl_options(), &pod)?;
        let reading = in_thread(move || {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            // What cannot be read is no port.
            let _ = output.read_line(&mut line);
            (line, output)
        });
        let Ok(read) = timeout(LONGEST, reading).await else {
            return Err(ForwardError::TimedOut { pod });
        };
        let (line, output) = read?;
        match port_in(&line) {
            Some(port) => Ok(Self { port, _kubectl: kubectl, _output: output }),
            None => Err(ForwardError::Refused { pod, message: kubectl.last_words(line).await }),
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The pod of the leader, by its Lease.
async fn leader(session: &Session) -> Result<String, ForwardError> {
    let (lease, now) = lease(&session.client).await?;
    if let Some(why) = why_none(lease.as_ref(), now) {
        return Err(ForwardError::NoLeader(why));
    }
    let holder = lease.and_then(|lease| lease.spec).and_then(|spec| spec.holder_identity);
    Ok(holder.unwrap_or_default())
}

/// Result of work that may block. Nothing waits for the thread, also not the end of this program: a
/// child of kubectl may hold a pipe open after kubectl has ended.
fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    thread::spawn(move || _ = done.send(work()));
    result
}

/// The local port in kubectl's first line.
fn port_in(line: &str) -> Option<u16> {
    line.strip_prefix(LISTENS)?.split_whitespace().next()?.parse().ok()
}

/// The kubectl process, which is killed when this is dropped.
struct Kubectl(Child);

impl Kubectl {
    fn start(options: &[OsString], pod: &str) -> Result<(Self, ChildStdout), ForwardError> {
        let mut command = Command::new("kubectl");
        command.args(options).args(["--namespace", NAMESPACE, "port-forward"]);
        command.args(["--address", "127.0.0.1", &format!("pod/{pod}"), &format!(":{PORT}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(ForwardError::NoKubectl)?;
        let output = child.stdout.take();
        let started = Self(child);
        let none = || ForwardError::NoKubectl(std::io::ErrorKind::BrokenPipe.into());
        Ok((started, output.ok_or_else(none)?))
    }

    /// The last error message of kubectl in one line, or `printed` if there is none.
    async fn last_words(&mut self, printed: String) -> String {
        // It may still run if it printed what we do not know.
        let _ = self.0.kill();
        let is_said = |line: &String| !line.trim().is_empty();
        let errors = self.0.stderr.take();
        let reading =
            in_thread(move || BufReader::new(errors?).lines().map_while(Result::ok).find(is_said));
        let said = timeout(LAST_WORDS, reading).await.ok().and_then(Result::ok).flatten();
        let line = said.or(Some(printed).filter(is_said));
        line.as_deref().unwrap_or("it ended without a word").trim().to_owned()
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_in_the_first_line() {
        assert_eq!(port_in("Forwarding from 127.0.0.1:41733 -> 9198\n"), Some(41733));
        for other in ["", "Forwarding from [::1]:41733 -> 9198\n", "Forwarding from 127.0.0.1:x"] {
            assert_eq!(port_in(other), None, "{other}");
        }
    }
}
