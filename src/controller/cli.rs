//! The command line of `stayput-reconciler`: options in, controller running until TERM.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use stayput_http::telemetry;
use stayput_http::telemetry::LogFormat;
use stayput_kube_access::cluster;
use stayput_kube_access::cluster::CrdError;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tracing::level_filters::LevelFilter;

use crate::apiserver::bounded;
use crate::{Account, Election, RunError, Settings, run as run_controller};
use stayput_kube_access::names::reconciler;

/// Exit code for a command that cannot be used as it was written (`EX_USAGE` of sysexits).
const USAGE: u8 = 64;

/// Restarts Elasticsearch and OpenSearch clusters on Kubernetes without losing a pod
#[derive(Debug, Parser)]
#[command(name = "stayput-reconciler", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch SearchClusters and restart their nodes
    Run(Box<Options>),
    /// Print the definition of the custom resource SearchCluster, as YAML
    Crd,
}

/// Every command and option of `stayput-reconciler`: man pages are made from it.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Runs the program with `args`, the first of which is its own name.
///
/// Exit codes: 0 done; 1 failed; 64 usage.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and go to stdout. If they cannot be written, the exit
            // code remains.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match cli.command {
        Command::Run(options) => run(*options),
        Command::Crd => crd(&mut io::stdout()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the exit code remains.
            let _ = writeln!(io::stderr(), "stayput-reconciler: {error}");
            ExitCode::FAILURE
        }
    }
}

fn crd(out: &mut impl Write) -> Result<(), CliError> {
    let yaml = cluster::crd_yaml()?;
    out.write_all(yaml.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Error that ends the program; written to stderr.
#[derive(Debug, thiserror::Error)]
enum CliError {
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
enum AddressError {
    #[error("{0:?} is not a port")]
    Port(String),
    #[error("{0:?} is not an address: write 127.0.0.1:8081 or :8081")]
    Address(String),
    #[error("{0} can be reached from other machines: write 127.0.0.1:{port}", port = .0.port())]
    NotLoopback(std::net::SocketAddr),
}

#[derive(Debug, Args)]
struct Options {
    /// Reconcile only this namespace; may be given several times. Without it, all namespaces
    #[arg(
        long = "namespace",
        value_name = "NAME",
        env = "STAYPUT_NAMESPACES",
        value_delimiter = ','
    )]
    namespaces: Vec<String>,
    /// Serve /livez, /readyz and /metrics here: ADDRESS:PORT, or :PORT for every address
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = address)]
    listen: SocketAddr,
    /// Serve /snapshots here, for `kubectl stayput plan` and `snapshot`; loopback only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9198", value_parser = local)]
    snapshots: SocketAddr,
    /// Reach the apiserver by this kubeconfig; without it by the pod's service account, or as kubectl does
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of this process: of the Lease, and of its service account
    #[arg(long, value_name = "NAME", env = "STAYPUT_POD_NAMESPACE")]
    own_namespace: Option<String>,
    /// Name of this process among its replicas
    #[arg(long, value_name = "NAME", env = "STAYPUT_POD_NAME")]
    own_name: Option<String>,
    /// Service account of the tokens for managers (spec.manager.auth.serviceAccountToken)
    #[arg(long, value_name = "NAME", env = "STAYPUT_SERVICE_ACCOUNT")]
    service_account: Option<String>,
    /// Run without leader election
    #[arg(long)]
    no_election: bool,
    /// Format of the log: ecs (JSON lines) or text
    #[arg(long, value_name = "FORMAT", env = "STAYPUT_LOG_FORMAT", default_value = "ecs")]
    log_format: LogFormat,
    /// The lowest level that is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "STAYPUT_LOG_LEVEL", default_value = "info")]
    log_level: LevelFilter,
}

/// Reads `ADDRESS:PORT` or `:PORT`.
fn address(text: &str) -> Result<SocketAddr, AddressError> {
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| AddressError::Port(port.to_owned()))?;
        // The IPv6 address accepts IPv4 as well.
        return Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port));
    }
    text.parse().map_err(|_| AddressError::Address(text.to_owned()))
}

/// Reads an [`address`] that only this machine, or this pod, can reach.
fn local(text: &str) -> Result<SocketAddr, AddressError> {
    let address = address(text)?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(AddressError::NotLoopback(address))
}

/// Runs until TERM or INT.
fn run(options: Options) -> Result<(), CliError> {
    telemetry::init(options.log_format, options.log_level);
    raise_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(CliError::Runtime)?;
    let result = runtime.block_on(async {
        let stop = ended().map_err(CliError::Signals)?;
        let config = bounded(config(&options).await?);
        let client = kube::Client::try_from(config).map_err(CliError::Client)?;
        run_controller(client, settings(options), stop).await?;
        Ok(())
    });
    // A name resolution that hangs must not delay the end of the process.
    runtime.shutdown_background();
    result
}

async fn config(options: &Options) -> Result<kube::Config, CliError> {
    let chosen =
        KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    match &options.kubeconfig {
        Some(file) => {
            let wrong = |source| CliError::KubeconfigFile { file: file.clone(), source };
            let kubeconfig = Kubeconfig::read_from(file).map_err(wrong)?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &chosen).await.map_err(wrong)
        }
        None if options.context.is_some() => {
            kube::Config::from_kubeconfig(&chosen).await.map_err(CliError::Kubeconfig)
        }
        None => kube::Config::infer().await.map_err(CliError::NoKubeconfig),
    }
}

fn settings(options: Options) -> Settings {
    let own = options.own_namespace;
    let name =
        options.own_name.unwrap_or_else(|| format!("{}-{}", reconciler::NAME, std::process::id()));
    let account = own.clone().zip(options.service_account);
    let election = own.filter(|_| !options.no_election);
    Settings {
        namespaces: options.namespaces,
        listen: Some(options.listen),
        snapshots: Some(options.snapshots),
        name,
        election: election
            .map(|namespace| Election { namespace, name: reconciler::NAME.to_owned() }),
        account: account.map(|(namespace, name)| Account { namespace, name }),
    }
}

/// Completes on TERM or INT.
fn ended() -> std::io::Result<impl Future<Output = ()>> {
    let (mut reader, writer) = UnixStream::pair()?;
    let writer = writer.into_std()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(async move {
        // An error of the socket ends the process as well.
        let _ = reader.read_u8().await;
    })
}

/// Raises the limit of file descriptors as far as it may be raised. Each manager that is asked takes one, and
/// the usual limit of 1024 is a convention for programs that use `select`.
fn raise_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!("cannot raise the limit of open files: {error}");
    }
}

#[cfg(test)]
mod tests;
