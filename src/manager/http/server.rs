//! The server: accepts connections, limits their number, shuts down in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::{self, SlotKind};
use super::context::{Context, Shutdown};
use super::key_files::{KeyFileError, KeyFiles};
use super::limits::Limits;
use super::listener::{self, BindError, Socket};
use super::reload::{self, Watch, WatchError};
use super::settings::HttpSettings;
use crate::errors::Errors;
use crate::supervisor::Handle;
use stayput_api::Status;

/// From a failed accept (mostly for lack of descriptors) to the next one.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Why the API cannot be served: what is wrong, and what to do.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Settings that contradict each other.
    #[error("{0}")]
    Settings(&'static str),
    /// Changes of key files cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A key or certificate that cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// An address or a path that cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// A server that is bound to its addresses and does not serve yet.
#[derive(Debug)]
pub struct Server {
    tcp: Option<TcpListener>,
    unix: Option<Socket>,
    files: KeyFiles,
    watch: Option<Watch>,
    settings: HttpSettings,
    limits: Limits,
}

impl Server {
    /// Checks the settings, reads keys and certificates, binds listener and socket. Call it before
    /// the engine is started, so that no start is lost to an error here.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub async fn bind(
        settings: HttpSettings,
        limits: Limits,
        errors: &Errors,
    ) -> Result<Self, Vec<ServerError>> {
        let contradictions = settings.validate();
        if !contradictions.is_empty() {
            return Err(contradictions.into_iter().map(ServerError::Settings).collect());
        }
        // Before the files are read, so that no change is missed.
        let watch =
            Watch::new(KeyFiles::paths(&settings), errors).map_err(|error| vec![error.into()])?;
        let files = KeyFiles::read(&settings)
            .map_err(|errors| errors.into_iter().map(ServerError::from).collect::<Vec<_>>())?;
        let mut errors: Vec<ServerError> = Vec::new();
        let tcp = match settings.listen {
            None => None,
            Some(address) => listener::tcp(address).await.map_err(|e| errors.push(e.into())).ok(),
        };
        let unix = match &settings.socket {
            None => None,
            Some(path) => {
                let for_others = !settings.allow_uid.is_empty();
                listener::unix(path, for_others).await.map_err(|e| errors.push(e.into())).ok()
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self { tcp, unix, files, watch, settings, limits })
    }

    /// The address of the TCP listener, with the port that the kernel chose for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` completes; after that, open requests have [`Limits::drain`] to be
    /// answered. Requests that wait for the engine are answered at once.
    pub async fn serve(self, handle: Handle, stop: impl Future<Output = ()>) {
        let Self { tcp, unix, files, watch, settings, limits } = self;
        let (shutdowns, shutdown) = watch::channel(Shutdown::NotStarted);
        let (published, keys) = watch::channel(Arc::new(files.keys()));
        let slots = Slots::new(limits.connections, limits.reserved_connections);
        let local = Slots::new(limits.local_connections, limits.local_reserved_connections);
        let context = Arc::new(Context::new(handle, keys, shutdown, limits, settings.open_metrics));

        log_addresses(&settings, tcp.as_ref());
        // Dropped together with this future; the listeners and the socket's file are dropped with
        // it.
        let mut tasks = JoinSet::new();
        if let Some(tcp) = tcp {
            tasks.spawn(accept_tcp(context.clone(), tcp, slots.clone(), settings.clone()));
        }
        if let Some(unix) = unix {
            tasks.spawn(accept_unix(
                context.clone(),
                unix,
                local.clone(),
                settings.allow_uid.into(),
            ));
        }
        if let Some(watch) = watch {
            tasks.spawn(reload::reload_on_change(watch, files, published));
        }
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

/// Logs the port, and what users need to make tokens.
fn log_addresses(settings: &HttpSettings, tcp: Option<&TcpListener>) {
    if let Some(address) = tcp.and_then(|listener| listener.local_addr().ok()) {
        let tls = settings.tls_cert.is_some();
        tracing::info!(%address, tls, "API listening");
    }
    if let Some(path) = &settings.socket {
        tracing::info!(path = %path.display(), "API listening");
    }
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
    listener: TcpListener,
    slots: Slots,
    settings: HttpSettings,
) {
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

async fn accept_unix(context: Arc<Context>, socket: Socket, slots: Slots, allowed: Arc<[u32]>) {
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
