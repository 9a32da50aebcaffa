//! Binds listener and socket, and retries each until it is bound.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::listener::{self, BindError};
use super::retry::delay_after;
use super::settings::HttpSettings;
use crate::errors::{ErrorCode, Errors};
use crate::process::KeptListener;
use crate::worker::{NoThread, WorkPanicked, Worker};

/// How long the directory of the socket may take to answer.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(5);

/// Listener and socket, bound or still to be bound.
#[derive(Debug)]
pub(super) struct Binding {
    address: Option<SocketAddr>,
    socket: Option<SocketBinding>,
    kept: KeptListener,
    pub(super) tcp: Option<TcpListener>,
    pub(super) unix: Option<UnixListener>,
    /// Reasons why a listener is not bound yet.
    pub(super) faults: Vec<String>,
}

impl Binding {
    /// Uses the listener that is kept, if one is.
    ///
    /// # Errors
    /// The thread that binds the socket cannot be made.
    pub(super) fn new(
        settings: &HttpSettings,
        kept: KeptListener,
        errors: &Errors,
    ) -> Result<Self, NoThread> {
        let tcp = settings.listen.and_then(|_| kept_listener(&kept).ok().flatten());
        let for_others = !settings.allow_uid.is_empty();
        let socket = settings.socket.clone();
        let socket = socket.map(|path| SocketBinding::new(path, for_others, errors)).transpose()?;
        Ok(Self {
            address: settings.listen.filter(|_| tcp.is_none()),
            socket,
            kept,
            tcp,
            unix: None,
            faults: Vec::new(),
        })
    }

    /// Tries to bind each listener that is not bound yet.
    pub(super) async fn attempt(&mut self) {
        self.faults.clear();
        if let Some(address) = self.address {
            match listener::tcp(address).await {
                Ok(bound) => {
                    self.kept.keep(bound.as_fd());
                    (self.address, self.tcp) = (None, Some(bound));
                }
                Err(error) => self.faults.push(error.to_string()),
            }
        }
        if let Some(socket) = &mut self.socket {
            match socket.attempt().await {
                Ok(bound) => (self.socket, self.unix) = (None, Some(bound)),
                Err(fault) => self.faults.push(fault),
            }
        }
    }

    /// Hands over the bound listeners, and retries until all are bound.
    pub(super) async fn complete(
        mut self,
        errors: Errors,
        tcp: oneshot::Sender<TcpListener>,
        unix: oneshot::Sender<UnixListener>,
    ) {
        let (mut tcp, mut unix) = (Some(tcp), Some(unix));
        let mut failures = 0;
        loop {
            hand_over(&mut self.tcp, &mut tcp);
            hand_over(&mut self.unix, &mut unix);
            if self.faults.is_empty() {
                return errors.resolve(ErrorCode::Api);
            }
            errors.report(ErrorCode::Api, self.faults.join("; "));
            failures += 1;
            sleep(delay_after(failures)).await;
            self.attempt().await;
        }
    }
}

type UnderWay = Pin<
    Box<dyn Future<Output = Result<Result<net::UnixListener, BindError>, WorkPanicked>> + Send>,
>;

/// A socket that is not bound yet. A thread binds it: its directory may be on a disk that hangs.
struct SocketBinding {
    path: PathBuf,
    for_others: bool,
    worker: Worker,
    /// An attempt that has taken too long.
    under_way: Option<UnderWay>,
}

impl fmt::Debug for SocketBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketBinding").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SocketBinding {
    fn new(path: PathBuf, for_others: bool, errors: &Errors) -> Result<Self, NoThread> {
        let worker = Worker::start("socket", errors)?;
        Ok(Self { path, for_others, worker, under_way: None })
    }

    async fn attempt(&mut self) -> Result<UnixListener, String> {
        let (path, for_others) = (self.path.clone(), self.for_others);
        let bind =
            || -> UnderWay { Box::pin(self.worker.run(move || listener::unix(&path, for_others))) };
        let under_way = self.under_way.get_or_insert_with(bind);
        let Ok(bound) = timeout(SOCKET_TIMEOUT, under_way).await else {
            return Err(format!(
                "{} cannot be made a unix socket: its directory does not answer; repair the volume",
                self.path.display()
            ));
        };
        self.under_way = None;
        let bound = bound.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        UnixListener::from_std(bound).map_err(|error| error.to_string())
    }
}

fn kept_listener(kept: &KeptListener) -> io::Result<Option<TcpListener>> {
    let Some(listener) = kept.descriptor()? else { return Ok(None) };
    TcpListener::from_std(listener.into()).map(Some)
}

fn hand_over<T>(bound: &mut Option<T>, receiver: &mut Option<oneshot::Sender<T>>) {
    if let Some(bound) = bound.take()
        && let Some(receiver) = receiver.take()
    {
        // It is there until the server ends.
        let _ = receiver.send(bound);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)] // proves JOURNAL-8
    async fn a_socket_whose_directory_hangs_is_waited_for_a_limited_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let settings = HttpSettings { socket: Some(path.clone()), ..HttpSettings::default() };
        let (kept, errors) = (KeptListener::default(), Errors::default());
        let mut binding = Binding::new(&settings, kept, &errors).unwrap();
        let (go, gate) = channel::<()>();
        let hung = binding.socket.as_ref().unwrap().worker.run(move || gate.recv());
        let began = Instant::now();
        binding.attempt().await;
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert!(binding.faults[0].contains("its directory does not answer"), "{binding:?}");
        go.send(()).unwrap();
        hung.await.unwrap().unwrap();
        while binding.unix.is_none() {
            binding.attempt().await;
        }
        assert!(binding.faults.is_empty() && path.exists());
    }
}
