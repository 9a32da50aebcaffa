//! `ui`: a page about a cluster, read-only, live, for a browser on this machine alone.
//!
//! [`feed`] follows a SearchCluster and its pods with the user's own rights. [`server`] decides who may read
//! which address, answers with the pages of [`html`](crate::html), and sends their changes as events.

mod feed;
mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use stayput_kube_access::names::random_hex;
use tokio::net::TcpListener;

use crate::error::Exit;
use crate::printer::Printer;
use crate::selection::{self, SelectionError};
use crate::session::Session;
use crate::ui::feed::Clusters;
use crate::ui::server::Keys;

/// Serves until the program is ended. `name` is the cluster that is shown first.
pub(crate) async fn ui(
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
    let keys = Keys { port, token: random_hex::<16>().map_err(|_| UiError::NoToken)? };
    let address = keys.address();
    let page = format!("{address}\nread-only, for you alone; it ends with Ctrl-C\n");
    printer.page(&page, &UiOutput { address })?;
    server::serve(listener, keys, Arc::new(Clusters::new(session, first))).await;
    Ok(())
}

/// Why no page is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UiError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another --port")]
    Listen { port: u16, source: io::Error },
    #[error("the system gives no random numbers")]
    NoToken,
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl UiError {
    pub(crate) fn exit(&self) -> Exit {
        if let Self::Selection(error) = self { error.exit() } else { Exit::Failed }
    }
}

/// `ui`, before it begins to serve.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UiOutput {
    /// Where the pages are, with the token that they ask for.
    pub(crate) address: String,
}
