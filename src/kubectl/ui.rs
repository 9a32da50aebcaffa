//! `ui`: a page about a cluster, read-only, live, for a browser on this machine alone.
//!
//! Pure: access to the pages ([`access`]), their addresses ([`route`]), and the pages themselves
//! ([`page`]), made from a [`page_model`]. [`feed`] follows a SearchCluster and its pods with the user's own
//! rights, [`server`] answers, and [`events`] sends the changes.

mod access;
mod answer;
mod clusters;
mod error;
mod events;
mod feed;
mod location;
mod page;
mod page_model;
mod route;
mod server;

#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpListener;

use super::json::UiOutput;
use super::printer::Printer;
use super::selection;
use super::session::Session;
use access::Keys;
use clusters::Clusters;
pub(super) use error::UiError;

/// Serves until the program is ended. `name` is the cluster that is shown first.
pub(super) async fn ui(
    session: Session,
    name: Option<&str>,
    port: u16,
    printer: &Printer,
) -> Result<(), UiError> {
    // What is wrong with the address of the cluster is said here and not in the browser.
    let first = match name {
        Some(name) => selection::cluster(&session, Some(name)).await?.metadata.name,
        None => selection::clusters(&session).await.map(|_| None)?,
    };
    let listen = |source| UiError::Listen { port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(listen)?;
    let port = listener.local_addr().map_err(listen)?.port();
    let keys = Keys { port, token: token()? };
    let address = keys.address();
    let page = format!("{address}\nread-only, for you alone; it ends with Ctrl-C\n");
    printer.page(&page, &UiOutput { address })?;
    server::serve(listener, keys, Arc::new(Clusters::new(session, first))).await;
    Ok(())
}

fn token() -> Result<String, UiError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| UiError::NoToken)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
