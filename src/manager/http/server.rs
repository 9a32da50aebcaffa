//! The server: accepts connections, limits their number, shuts down in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::binding::Binding;
use super::reload::Reloader;
use super::settings::HttpSettings;
use super::tls::KeptPair;
use super::{Context, Limits, Shutdown, connection};
use crate::errors::Errors;
use crate::process::{KeptListener, unmap_code};
use crate::supervisor::Handle;
use stayput_api::Status;
use stayput_http::server::{Places, boxed};

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
    /// Checks the settings, reads keys and certificates, binds listener and socket; a kept listener
    /// is used again. Faults are in [`Self::faults`] and are retried while the server serves; only
    /// then a certificate is kept, or the kept one served.
    ///
    /// Settings that contradict each other: served, they could leave the API open. Or a thread
    /// cannot be made: the one that reads the key files, or the one that binds the socket.
    pub async fn bind(
        settings: HttpSettings,
        limits: Limits,
        errors: &Errors,
        kept: KeptListener,
        kept_pair: Option<KeptPair>,
    ) -> Result<Self, Vec<String>> {
        let contradictions = settings.validate();
        if !contradictions.is_empty() {
            return Err(contradictions.into_iter().map(str::to_owned).collect());
        }
        let mut reloader =
            Reloader::new(&settings, errors, kept_pair).map_err(|error| vec![error.to_string()])?;
        if timeout(FIRST_READING, reloader.read(None)).await.is_err() {
            reloader.faults.push(
                "keys and certificates cannot be read: their volume does not answer".to_owned(),
            );
        }
        let mut binding =
            Binding::new(&settings, kept, errors).map_err(|error| vec![error.to_string()])?;
        binding.attempt().await;
        let limits = limits.within(descriptor_limit());
        Ok(Self { binding, reloader, settings, limits })
    }

    /// Faults so far, and what to do: all at once.
    pub fn faults(&self) -> Vec<String> {
        [&self.reloader.faults[..], &self.binding.faults].concat()
    }

    /// The address of the TCP listener, with the port that the kernel chose for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        self.binding.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` completes; after that, open requests have [`Limits::drain`] to be answered.
    /// Requests that wait for the engine are answered at once. Faults are reported to `errors`.
    pub async fn serve(self, handle: Handle, errors: Errors, stop: impl Future<Output = ()>) {
        let Self { binding, reloader, settings, limits } = self;
        let (shutdowns, shutdown) = watch::channel(Shutdown::NotStarted);
        let keys = reloader.checked_keys();
        let context = Arc::new(Context::new(handle, keys, shutdown, limits, settings.open_metrics));
        let [places, local] = [(); 2].map(|()| {
            let counting = Arc::clone(&context);
            let count = move || counting.metrics.count_eviction();
            // TLS and HTTP are most of the program, and nobody calls.
            Places::new(limits.capacity(), count, unmap_code)
        });

        log_rules(&settings);
        // Dropped together with this future, and the listeners with it.
        let mut tasks = JoinSet::new();
        let (tcp_bound, tcp) = oneshot::channel();
        let (unix_bound, unix) = oneshot::channel();
        tasks.spawn(boxed(binding.complete(errors.clone(), tcp_bound, unix_bound)));
        tasks.spawn(boxed(accept_tcp(context.clone(), tcp, places.clone(), settings.clone())));
        tasks.spawn(boxed(accept_unix(context.clone(), unix, local.clone(), settings)));
        tasks.spawn(boxed(reloader.run(errors)));
        tasks.spawn(boxed(count_exits(context)));
        stop.await;

        tasks.shutdown().await;
        shutdowns.send_replace(Shutdown::Draining);
        let drained = async {
            places.all_closed().await;
            local.all_closed().await;
        };
        if timeout(limits.drain, drained).await.is_err() {
            tracing::warn!("some requests were not answered in time; their connections are closed");
        }
        shutdowns.send_replace(Shutdown::Closing);
    }
}

/// Number of descriptors that this process may have.
fn descriptor_limit() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Logs who may call, and what users need to make tokens.
fn log_rules(settings: &HttpSettings) {
    if settings.insecure_no_auth {
        tracing::warn!(
            "no authentication: every program on this machine may stop the engine (--insecure-no-auth)"
        );
    }
    let rules = settings.rules();
    if settings.accepts_tokens() {
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

async fn accept_tcp(
    context: Arc<Context>,
    bound: oneshot::Receiver<TcpListener>,
    places: Arc<Places>,
    settings: HttpSettings,
) {
    // Without an address the sender is dropped.
    let Ok(listener) = bound.await else { return };
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, tls = settings.tls_cert.is_some(), "API listening");
    }
    let allowed: Arc<[_]> = Arc::from(settings.allow_client);
    let insecure = settings.insecure_no_auth;
    let connection = |stream, _, place| {
        connection::tcp(context.clone(), stream, place, Arc::clone(&allowed), insecure)
    };
    places.accept(listener, connection).await;
}

async fn accept_unix(
    context: Arc<Context>,
    bound: oneshot::Receiver<UnixListener>,
    places: Arc<Places>,
    settings: HttpSettings,
) {
    let Ok(socket) = bound.await else { return };
    if let Some(path) = &settings.socket {
        tracing::info!(path = %path.display(), "API listening");
    }
    let allowed: Arc<[u32]> = settings.allow_uid.into();
    let connection = |stream, origin, place| {
        connection::unix(context.clone(), stream, origin, place, Arc::clone(&allowed))
    };
    places.accept(socket, connection).await;
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
