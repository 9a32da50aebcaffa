//! From settings to a running controller, and to its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::apiserver::Apiserver;
use super::controller::Controller;
use super::health::Health;
use super::lease::Candidate;
use super::listen;
use super::metrics::Metrics;
use super::settings::Settings;
use super::snapshots;
use super::window::Windows;

/// Looks after SearchClusters until `stop` completes; then passes in hand are finished and the Lease
/// is let go.
///
/// # Errors
/// A sentence, if it cannot listen where it is told to.
pub async fn run(
    client: kube::Client,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let metrics = Arc::new(Metrics::new());
    let health = Arc::new(Health::default());
    let _listener = match settings.listen {
        Some(address) => {
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| format!("cannot listen on {address}: {error}"))?;
            let serve = listen::probes(listener, Arc::clone(&health), Arc::clone(&metrics));
            Some(Ended(tokio::spawn(serve)))
        }
        None => None,
    };
    let windows = Windows::default();
    let _snapshots = match settings.snapshots {
        Some(address) => show(address, &windows).await,
        None => None,
    };
    let settings = Arc::new(settings);
    let controller = Controller {
        api: Apiserver::new(client.clone(), Arc::clone(&metrics)),
        metrics,
        settings: Arc::clone(&settings),
        health: Arc::clone(&health),
        windows,
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        namespaces = settings.namespaces.join(","),
        "looking after SearchClusters"
    );
    match &settings.election {
        None => until(&controller, stop).await,
        Some(election) => {
            let mut candidate = Candidate::new(client, election, &settings.name);
            elected(&controller, &mut candidate, &health, stop).await;
            candidate.release().await;
        }
    }
    tracing::info!("ended");
    Ok(())
}

/// Shows snapshots to this machine. Restarts do not depend on it, so that its failure is told only.
async fn show(address: SocketAddr, windows: &Windows) -> Option<Ended> {
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let windows = windows.clone();
            let answer = move |request| snapshots::answer(request, windows.clone());
            Some(Ended(tokio::spawn(listen::serve(listener, answer))))
        }
        Err(error) => {
            tracing::warn!(
                "cannot listen on {address}, so that nobody can take snapshots: {error}"
            );
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

/// Works whenever it is elected.
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
        // Who waits has nothing to get in sync with.
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
        // The Lease is held on to while the passes in hand come to their end.
        tokio::select! {
            () = &mut run => {}
            () = &mut election => {}
        }
    }
}

/// A task that ends with its guard.
struct Ended(JoinHandle<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}
