//! Runs the controller with its settings, until its end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::apiserver::Apiserver;
use crate::context::Shared;
use crate::definition::Definition;
use crate::http_server::{Health, SnapshotQueues, serve_probes};
use crate::lease::{Candidate, Lease};
use crate::metrics::Metrics;
use crate::workers::Controller;

/// Reason why the controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Cannot listen on the address for probes and metrics.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

/// Reconciles SearchClusters until `stop` completes; then finishes the reconciles under way and releases the
/// Lease.
///
/// # Errors
/// If it cannot listen on the address of the settings.
pub async fn run(
    client: kube::Client,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let metrics = Arc::new(Metrics::new());
    let health = Arc::new(Health::default());
    let _listener = match settings.listen {
        Some(address) => {
            let listener = TcpListener::bind(address)
                .await
                .map_err(|source| RunError::Listen { address, source })?;
            let serve = serve_probes(listener, Arc::clone(&health), Arc::clone(&metrics));
            Some(AbortOnDrop(tokio::spawn(serve)))
        }
        None => None,
    };
    let snapshots = SnapshotQueues::default();
    let _snapshot_server = match settings.snapshots {
        Some(address) => serve_snapshots(address, &snapshots).await,
        None => None,
    };
    let settings = Arc::new(settings);
    let election = settings.election.as_ref();
    let mut candidate =
        election.map(|election| Candidate::new(client.clone(), election, &settings.name));
    let lease = candidate.as_ref().map_or(Lease::not_needed(), Candidate::lease);
    metrics.set_lease(lease.clone());
    let api = Apiserver::new(client, Arc::clone(&metrics));
    let (definition, follow) = Definition::read(api.clone()).await;
    let _definition = AbortOnDrop(tokio::spawn(follow));
    let shared = Shared {
        api,
        definition,
        lease,
        metrics,
        settings: Arc::clone(&settings),
        health: Arc::clone(&health),
    };
    let controller = Controller { shared, snapshots };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        namespaces = settings.namespaces.join(","),
        "started"
    );
    match &mut candidate {
        None => until(&controller, stop).await,
        Some(candidate) => {
            elected(&controller, candidate, &health, stop).await;
            candidate.release().await;
        }
    }
    tracing::info!("stopped");
    Ok(())
}

/// Serves snapshots. Restarts do not depend on it: an error is only logged.
async fn serve_snapshots(address: SocketAddr, snapshots: &SnapshotQueues) -> Option<AbortOnDrop> {
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let serving = crate::http_server::serve_snapshots(listener, snapshots.clone());
            Some(AbortOnDrop(tokio::spawn(serving)))
        }
        Err(error) => {
            tracing::warn!("cannot listen on {address}, snapshots are not available: {error}");
            None
        }
    }
}

async fn until(controller: &Controller, stop: impl Future<Output = ()>) {
    let (end, ended) = watch::channel(false);
    let mut run = pin!(controller.run(ended));
    tokio::select! {
        () = &mut run => return,
        () = stop => {}
    }
    end.send_replace(true);
    run.await;
}

/// Runs the controller whenever this replica is the leader.
async fn elected(
    controller: &Controller,
    candidate: &mut Candidate,
    health: &Health,
    stop: impl Future<Output = ()>,
) {
    let (leads, leading) = watch::channel(false);
    let mut stop = pin!(stop);
    let mut election = pin!(candidate.run(&leads));
    let mut is_over = false;
    while !is_over {
        // A replica that is not the leader has no watches to be in sync.
        health.set_ready(true);
        let mut turn = leading.clone();
        tokio::select! {
            () = &mut stop => return,
            () = &mut election => return,
            _ = turn.wait_for(|leads| *leads) => {}
        }
        health.set_ready(false);
        let (end, ended) = watch::channel(false);
        let mut run = pin!(controller.run(ended));
        tokio::select! {
            () = &mut run => {}
            () = &mut stop => is_over = true,
            () = &mut election => {}
            _ = turn.wait_for(|leads| !*leads) => {}
        }
        end.send_replace(true);
        // The Lease is renewed until the reconciles under way have ended.
        tokio::select! {
            () = &mut run => {}
            () = &mut election => {}
        }
    }
}

/// A task that is aborted when this value is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The settings of the controller, without the access to the apiserver.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The namespaces to watch; empty for all.
    pub namespaces: Vec<String>,
    /// Address that serves `/livez`, `/readyz` and `/metrics`, if anything does.
    pub listen: Option<SocketAddr>,
    /// Loopback address that serves `/snapshots`, if anything does.
    pub snapshots: Option<SocketAddr>,
    /// Name of this process among its replicas, in events and in the Lease.
    pub name: String,
    /// The Lease for leader election; without it this replica is the leader.
    pub election: Option<Election>,
    /// The service account of the tokens for managers; without it, `serviceAccountToken` cannot be
    /// used.
    pub account: Option<Account>,
}

/// The Lease for leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Namespace of the service account.
    pub namespace: String,
    /// Name of the service account.
    pub name: String,
}
