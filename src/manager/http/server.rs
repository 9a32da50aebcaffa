//! The server: accepts connections, bounds their number, ends in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::app::{App, Stage};
use super::connection::{self, Place};
use super::limits::Limits;
use super::listener::{self, Socket};
use super::material::Files;
use super::reload::{self, Watch};
use super::settings::HttpSettings;
use crate::supervisor::Handle;
use stayput_api::Status;

/// After a failed accept (no descriptors left, mostly), so that it is not tried without pause.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that holds its addresses and serves nothing yet.
#[derive(Debug)]
pub struct Server {
    tcp: Option<TcpListener>,
    unix: Option<Socket>,
    files: Files,
    watch: Option<Watch>,
    settings: HttpSettings,
    limits: Limits,
}

impl Server {
    /// Checks the settings, reads keys and certificates, binds listener and socket. To be called
    /// before the engine is started: what is wrong here must not cost a start.
    ///
    /// # Errors
    /// One sentence for each thing that is wrong: what, and what to do.
    pub async fn bind(settings: HttpSettings, limits: Limits) -> Result<Self, Vec<String>> {
        let errors = settings.validate();
        if !errors.is_empty() {
            return Err(errors);
        }
        // Before the files are read, so that no change falls in between.
        let watch = Watch::new(Files::paths(&settings)).map_err(|error| vec![error])?;
        let files = Files::read(&settings)?;
        let mut errors = Vec::new();
        let tcp = match settings.listen {
            None => None,
            Some(address) => listener::tcp(address).await.map_err(|e| errors.push(e)).ok(),
        };
        let unix = match &settings.socket {
            None => None,
            Some(path) => {
                let for_others = !settings.allow_uid.is_empty();
                listener::unix(path, for_others).await.map_err(|e| errors.push(e)).ok()
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self { tcp, unix, files, watch, settings, limits })
    }

    /// The address of the listener, with the port the kernel chose if that was left to it.
    pub fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` completes, then lets requests under way be answered for a bounded time.
    /// Requests that wait for the engine are answered at once then.
    pub async fn serve(self, handle: Handle, stop: impl Future<Output = ()>) {
        let Self { tcp, unix, files, watch, settings, limits } = self;
        let (stages, stage) = watch::channel(Stage::Open);
        let (materials, material) = watch::channel(Arc::new(files.material()));
        let slots = Slots::new(limits.connections, limits.reserved_connections);
        let local = Slots::new(limits.local_connections, limits.local_reserved_connections);
        let app = Arc::new(App::new(handle, material, stage, limits, settings.open_metrics));

        announce(&settings, tcp.as_ref());
        // Dropped with this future, and with them the listeners and the socket's file.
        let mut tasks = JoinSet::new();
        if let Some(tcp) = tcp {
            tasks.spawn(accept_tcp(app.clone(), tcp, slots.clone(), settings.clone()));
        }
        if let Some(unix) = unix {
            tasks.spawn(accept_unix(app.clone(), unix, local.clone(), settings.allow_uid.into()));
        }
        if let Some(watch) = watch {
            tasks.spawn(reload::follow(watch, files, materials));
        }
        tasks.spawn(count_exits(app));
        stop.await;

        tasks.shutdown().await;
        stages.send_replace(Stage::Draining);
        // Whoever gets all the places knows that nobody has one any more.
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
            tracing::warn!("some requests were not answered in time and are cut off");
        }
        stages.send_replace(Stage::Cut);
    }
}

/// What whoever makes tokens or looks for the port has to know.
fn announce(settings: &HttpSettings, tcp: Option<&TcpListener>) {
    if let Some(address) = tcp.and_then(|listener| listener.local_addr().ok()) {
        let tls = settings.tls_cert.is_some();
        tracing::info!(%address, tls, "the API listens");
    }
    if let Some(path) = &settings.socket {
        tracing::info!(path = %path.display(), "the API listens");
    }
    if settings.insecure_no_auth {
        tracing::warn!("everybody on this machine may stop the engine: --insecure-no-auth");
    }
    let rules = settings.rules();
    let takes_tokens =
        settings.jwt_key.is_some() || settings.jwt_public_key.is_some() || settings.jwks.is_some();
    if takes_tokens {
        tracing::info!(audience = rules.required_audience(), "tokens have to name this audience");
        if rules.pod_audience.is_none() {
            tracing::warn!(
                "tokens are not bound to this pod: whoever is sent one can use it at every other \
                 manager with the same --jwt-audience; set STAYPUT_POD_NAMESPACE and \
                 STAYPUT_POD_UID from the downward API"
            );
        }
    }
}

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

    /// A regular place, or the next reserved one. `None` when they are closed, which nobody does.
    async fn take(&self) -> Option<(OwnedSemaphorePermit, Place)> {
        match self.regular.clone().try_acquire_owned() {
            Ok(permit) => Some((permit, Place::Regular)),
            Err(_) => {
                let permit = self.reserved.clone().acquire_owned().await.ok()?;
                Some((permit, Place::Reserved))
            }
        }
    }
}

/// The new connection. Without descriptors there is none, and a pause keeps that from spinning.
async fn accepted<S, A>(result: io::Result<(S, A)>) -> Option<S> {
    match result {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a connection could not be accepted");
            sleep(PAUSE).await;
            None
        }
    }
}

async fn accept_tcp(app: Arc<App>, listener: TcpListener, slots: Slots, settings: HttpSettings) {
    let allowed = Arc::from(settings.allow_client);
    loop {
        let Some(stream) = accepted(listener.accept().await).await else { continue };
        let Some((permit, place)) = slots.take().await else { return };
        let served = connection::tcp(
            app.clone(),
            stream,
            place,
            Arc::clone(&allowed),
            settings.insecure_no_auth,
        );
        tokio::spawn(async move {
            served.await;
            drop(permit);
        });
    }
}

async fn accept_unix(app: Arc<App>, socket: Socket, slots: Slots, allowed: Arc<[u32]>) {
    loop {
        let Some(stream) = accepted(socket.listener.accept().await).await else { continue };
        let Some((permit, place)) = slots.take().await else { return };
        let served = connection::unix(app.clone(), stream, place, Arc::clone(&allowed));
        tokio::spawn(async move {
            served.await;
            drop(permit);
        });
    }
}

/// Counts the ends of runs for the metrics: the status keeps only the last.
async fn count_exits(app: Arc<App>) {
    let mut status = app.handle.subscribe();
    let id = |status: &Status| status.last_exit.as_ref().map(|exit| exit.run.clone());
    let mut counted = id(&status.borrow_and_update());
    while status.changed().await.is_ok() {
        let status = status.borrow_and_update().clone();
        let now = id(&status);
        if now != counted {
            if let Some(exit) = &status.last_exit {
                app.metrics.count_exit(exit.reason);
            }
            counted = now;
        }
    }
}
