//! Errors of the program, as it prints them.

use std::io;
use std::path::PathBuf;

use kube::config::{InferConfigError, KubeconfigError};

use crate::RunError;
use stayput_kube_access::cluster::CrdError;

/// Error that ends the program; written to stderr.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Definition(#[from] CrdError),
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    #[error("cannot set up the runtime: {0}")]
    Runtime(#[source] io::Error),
    #[error("cannot receive signals: {0}")]
    Signals(#[source] io::Error),
    #[error("the kubeconfig {} cannot be used: {source}", file.display())]
    KubeconfigFile {
        file: PathBuf,
        #[source]
        source: KubeconfigError,
    },
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("neither in a pod nor with a kubeconfig: {0}; give --kubeconfig FILE")]
    NoKubeconfig(#[source] InferConfigError),
    #[error("cannot create a client of the apiserver: {0}")]
    Client(#[source] kube::Error),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Error of an option whose value is not an address, or not one that may be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AddressError {
    #[error("{0:?} is not a port")]
    Port(String),
    #[error("{0:?} is not an address: write 127.0.0.1:8081 or :8081")]
    Address(String),
    #[error("{0} can be reached from other machines: write 127.0.0.1:{port}", port = .0.port())]
    NotLoopback(std::net::SocketAddr),
}
