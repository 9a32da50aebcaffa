//! Binds listener and socket. What cannot be bound is tried again until it can.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::listener::{self, Socket};
use super::retry::delay_after;
use super::settings::HttpSettings;
use crate::errors::{ErrorCode, Errors};
use crate::process::KeptListener;

/// What is bound, and what is not bound yet.
#[derive(Debug)]
pub(super) struct Binding {
    address: Option<SocketAddr>,
    path: Option<PathBuf>,
    for_others: bool,
    kept: KeptListener,
    pub(super) tcp: Option<TcpListener>,
    pub(super) unix: Option<Socket>,
    /// Why something is not bound yet.
    pub(super) faults: Vec<String>,
}

impl Binding {
    /// Uses the listener that is kept, if one is.
    pub(super) fn new(settings: &HttpSettings, kept: KeptListener) -> Self {
        let tcp = settings.listen.and_then(|_| kept_listener(&kept).ok().flatten());
        Self {
            address: settings.listen.filter(|_| tcp.is_none()),
            path: settings.socket.clone(),
            for_others: !settings.allow_uid.is_empty(),
            kept,
            tcp,
            unix: None,
            faults: Vec::new(),
        }
    }

    /// Binds what is not bound yet.
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
        if let Some(path) = &self.path {
            match listener::unix(path, self.for_others).await {
                Ok(bound) => (self.path, self.unix) = (None, Some(bound)),
                Err(error) => self.faults.push(error.to_string()),
            }
        }
    }

    /// Hands over what is bound, and tries again until all is.
    pub(super) async fn complete(
        mut self,
        errors: Errors,
        tcp: oneshot::Sender<TcpListener>,
        unix: oneshot::Sender<Socket>,
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
