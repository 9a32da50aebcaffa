//! The server: accepts connections, limits their number, shuts down in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::binding::Binding;
use super::connection::{self, SlotKind};
use super::context::{Context, Shutdown};
use super::limits::Limits;
use super::listener::Socket;
use super::reload::Reloader;
use super::settings::HttpSettings;
use crate::errors::Errors;
use crate::supervisor::Handle;
use stayput_api::Status;

/// From a failed accept (mostly for lack of descriptors) to the next one.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How long the first reading of keys and certificates may take.
const FIRST_READING: Duration = Duration::from_secs(10);

/// A server that is bound as far as that is possible, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    binding: Binding,
    reloader: Reloader,
    settings: HttpSettings,
    limits: Limits,
}

impl Server {
    /// Checks the settings, reads keys and certificates, binds listener and socket. What does not
    /// work is in [`Self::faults`] and is tried again while the server serves.
    ///
    /// # Errors
    /// Settings that contradict each other: served, they could leave the API open.
    pub async fn bind(settings: HttpSettings, limits: Limits) -> Result<Self, Vec<&'static str>> {
        let contradictions = settings.validate();
        if !contradictions.is_empty() {
            return Err(contradictions);
        }
        let mut reloader = Reloader::new(&settings);
        if timeout(FIRST_READING, reloader.read(None)).await.is_err() {
            reloader.faults.push(
                "keys and certificates cannot be read: their volume does not answer".to_owned(),
            );
        }
        let mut binding = Binding::new(&settings);
        binding.attempt().await;
        Ok(Self { binding, reloader, settings, limits })
    }

    /// What does not work yet, and what to do: everything at once.
    pub fn faults(&self) -> Vec<String> {
        [&self.reloader.faults[..], &self.binding.faults].concat()
    }

    /// The address of the TCP listener, with the port that the kernel chose for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        self.binding.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` completes; after that, open requests have [`Limits::drain`] to be
    /// answered. Requests that wait for the engine are answered at once. What does not work is
    /// reported to `errors`.
    pub async fn serve(self, handle: Handle, errors: Errors, stop: impl Future<Output = ()>) {
        let Self { binding, reloader, settings, limits } = self;
        let (shutdowns, shutdown) = watch::channel(Shutdown::NotStarted);
        let keys = reloader.checked_keys();
        let slots = Slots::new(limits.connections, limits.reserved_connections);
        let local = Slots::new(limits.local_connections, limits.local_reserved_connections);
        let context = Arc::new(Context::new(handle, keys, shutdown, limits, settings.open_metrics));

        log_rules(&settings);
        // Dropped together with this future; the listeners and the socket's file are dropped with
        // it.
        let mut tasks = JoinSet::new();
        let (tcp_bound, tcp) = oneshot::channel();
        let (unix_bound, unix) = oneshot::channel();
        tasks.spawn(binding.complete(errors.clone(), tcp_bound, unix_bound));
        tasks.spawn(accept_tcp(context.clone(), tcp, slots.clone(), settings.clone()));
        tasks.spawn(accept_unix(context.clone(), unix, local.clone(), settings));
        tasks.spawn(reloader.run(errors));
        tasks.spawn(count_exits(context));
        stop.await;

        tasks.shutdown().await;
        shutdowns.send_replace(Shutdown::Draining);
        // When all permits are free, no connection is left.
        let all = |semaphore: Arc<Semaphore>, count| async move {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let _ = semaphore.acquire_many(count).await;
        };
        let drained = async {
            all(slots.regular, limits.connections).await;
            all(slots.reserved, limits.reserved_connections).await;
            all(local.regular, limits.local_connections).await;
            all(local.reserved, limits.local_reserved_connections).await;
        };
        if timeout(limits.drain, drained).await.is_err() {
            tracing::warn!("some requests were not answered in time; their connections are closed");
        }
        shutdowns.send_replace(Shutdown::Closing);
    }
}

/// Logs who may call, and what users need to make tokens.
fn log_rules(settings: &HttpSettings) {
    if settings.insecure_no_auth {
        tracing::warn!(
            "no authentication: every program on this machine may stop the engine (--insecure-no-auth)"
        );
    }
    let rules = settings.rules();
    let accepts_tokens =
        settings.jwt_key.is_some() || settings.jwt_public_key.is_some() || settings.jwks.is_some();
    if accepts_tokens {
        tracing::info!(audience = rules.required_audience(), "tokens must have this audience");
        if rules.pod_audience.is_none() {
            tracing::warn!(
                "tokens are not bound to this pod: a token for it is valid at every manager with the \
                 same --jwt-audience; set STAYPUT_POD_NAMESPACE and STAYPUT_POD_UID from the \
                 downward API"
            );
        }
    }
}

/// How many more connections a listener may have.
#[derive(Debug, Clone)]
struct Slots {
    regular: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

impl Slots {
    fn new(regular: usize, reserved: usize) -> Self {
        Self {
            regular: Arc::new(Semaphore::new(regular)),
            reserved: Arc::new(Semaphore::new(reserved)),
        }
    }

    /// A regular slot, or the next reserved one. `None` if the semaphores are closed, which they
    /// never are.
    async fn take(&self) -> Option<(OwnedSemaphorePermit, SlotKind)> {
        match self.regular.clone().try_acquire_owned() {
            Ok(permit) => Some((permit, SlotKind::Regular)),
            Err(_) => {
                let permit = self.reserved.clone().acquire_owned().await.ok()?;
                Some((permit, SlotKind::Reserved))
            }
        }
    }
}

/// The next connection. Without free descriptors there is none, and the delay prevents a busy loop.
async fn accepted<S, A>(result: io::Result<(S, A)>) -> Option<S> {
    match result {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a connection could not be accepted");
            sleep(ACCEPT_RETRY_DELAY).await;
            None
        }
    }
}

async fn accept_tcp(
    context: Arc<Context>,
    bound: oneshot::Receiver<TcpListener>,
    slots: Slots,
    settings: HttpSettings,
) {
    // Without an address the sender is dropped.
    let Ok(listener) = bound.await else { return };
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, tls = settings.tls_cert.is_some(), "API listening");
    }
    let allowed = Arc::from(settings.allow_client);
    loop {
        let Some(stream) = accepted(listener.accept().await).await else { continue };
        let Some((permit, slot)) = slots.take().await else { return };
        let served = connection::tcp(
            context.clone(),
            stream,
            slot,
            Arc::clone(&allowed),
            settings.insecure_no_auth,
        );
        tokio::spawn(async move {
            served.await;
            drop(permit);
        });
    }
}

async fn accept_unix(
    context: Arc<Context>,
    bound: oneshot::Receiver<Socket>,
    slots: Slots,
    settings: HttpSettings,
) {
    let Ok(socket) = bound.await else { return };
    if let Some(path) = &settings.socket {
        tracing::info!(path = %path.display(), "API listening");
    }
    let allowed: Arc<[u32]> = settings.allow_uid.into();
    loop {
        let Some(stream) = accepted(socket.listener.accept().await).await else { continue };
        let Some((permit, slot)) = slots.take().await else { return };
        let served = connection::unix(context.clone(), stream, slot, Arc::clone(&allowed));
        tokio::spawn(async move {
            served.await;
            drop(permit);
        });
    }
}

/// Counts the ends of runs for the metrics: the status has only the last one.
async fn count_exits(context: Arc<Context>) {
    let mut status = context.handle.subscribe();
    let id = |status: &Status| status.last_exit.as_ref().map(|exit| exit.run.clone());
    let mut counted = id(&status.borrow_and_update());
    while status.changed().await.is_ok() {
        let status = status.borrow_and_update().clone();
        let now = id(&status);
        if now != counted {
            if let Some(exit) = &status.last_exit {
                context.metrics.count_exit(exit.reason);
            }
            counted = now;
        }
    }
}
