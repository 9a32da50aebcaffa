//! What can be written on the command line.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};

use super::wait::Goal;
use crate::config_watch::ConfigDir;
use crate::settings::{self, RunArgs};
use stayput_api::{ConfigChoice, MAX_SEQUENCE, Span, StartRequest, StopRequest};

/// Version and platform, as `version` and `--version` tell them.
pub(super) static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!("{} ({}-{})", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS)
});

/// Restarts Elasticsearch and OpenSearch without losing the pod
#[derive(Debug, Parser)]
#[command(name = "stayput", version = VERSION.as_str(), after_help = AFTER_HELP)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 refused or failed; 2 manager not reachable; 64 usage; 124 not done in time. \
run ends with the engine's code.";

const WITHOUT_PROBE: &str = "\
Where the manager has no --ready to ask, an engine counts as running and ready once it has lived \
for 10 s.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Supervise COMMAND: as PID 1, or as child subreaper
    #[command(override_usage = "stayput run [OPTIONS] -- COMMAND [ARG]...")]
    Run(Box<RunArgs>),
    /// Show what the engine is, and why it waits
    Status {
        #[command(flatten)]
        client: ClientArgs,
        /// Print the API's answer, unchanged
        #[arg(long)]
        json: bool,
        /// Go on, with a line for each change
        #[arg(long)]
        watch: bool,
    },
    /// Stop the engine; the pod and the manager stay
    Stop {
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        request: StopArgs,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Start the engine
    #[command(after_help = WITHOUT_PROBE)]
    Start {
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        request: StartArgs,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Stop the engine, wait until it is gone, start it
    #[command(after_help = WITHOUT_PROBE)]
    Restart {
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        request: RestartArgs,
        #[command(flatten)]
        wait: PatienceArgs,
    },
    /// Wait until the engine is as wished; changes nothing
    #[command(after_help = WITHOUT_PROBE)]
    Wait {
        #[command(flatten)]
        client: ClientArgs,
        /// stopped, running, ready, or checksum=C (the config with that checksum is mounted)
        #[arg(long = "for", value_name = "GOAL")]
        goal: Goal,
        /// How long
        #[arg(long, value_name = "TIME", default_value = PATIENCE, value_parser = Span::parse)]
        timeout: Span,
        /// Print the API's last answer, unchanged
        #[arg(long)]
        json: bool,
    },
    /// Print the checksum of the engine's config, as the status shows it
    Checksum(ChecksumArgs),
    /// Mint a token for curl
    Token(TokenArgs),
    /// Copy this program into DIR (for an init container), print where it is
    Install {
        /// An existing directory
        dir: PathBuf,
    },
    /// Print version and platform
    Version,
}

/// How long a command waits by default: Elasticsearch may take minutes to end and to be ready.
const PATIENCE: &str = "10m";

/// How to reach the manager.
#[derive(Debug, Default, Args)]
pub(super) struct ClientArgs {
    /// Its unix socket [env: STAYPUT_SOCKET] [default: /run/stayput/stayput.sock]
    #[arg(long, value_name = "PATH", help_heading = "Manager", conflicts_with = "url")]
    pub(super) socket: Option<PathBuf>,
    /// Its address, https://HOST:PORT [env: STAYPUT_URL]
    #[arg(long, value_name = "URL", help_heading = "Manager")]
    pub(super) url: Option<String>,
    /// File with a token to show [env: STAYPUT_TOKEN_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) token_file: Option<PathBuf>,
    /// CA of the manager's certificate (PEM) [env: STAYPUT_CA]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) ca: Option<PathBuf>,
    /// Client certificate to show (PEM) [env: STAYPUT_CERT]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) cert: Option<PathBuf>,
    /// Key of the client certificate (PEM) [env: STAYPUT_KEY]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) key: Option<PathBuf>,
}

/// Whether and how long to wait for the end of a stop or start.
#[derive(Debug, Args)]
pub(super) struct WaitArgs {
    /// Return once the request is accepted
    #[arg(long, conflicts_with = "timeout")]
    pub(super) no_wait: bool,
    #[command(flatten)]
    pub(super) patience: PatienceArgs,
}

#[derive(Debug, Args)]
pub(super) struct PatienceArgs {
    /// How long to wait until it is done; what was asked for stands, whether it is or not
    #[arg(long, value_name = "TIME", default_value = PATIENCE, value_parser = Span::parse)]
    pub(super) timeout: Span,
    /// Print the API's last answer, unchanged
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Fence {
    /// Fencing number; the manager takes the next one by itself
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sequence)]
    sequence: Option<u64>,
    /// Only if this is the pod's uid
    #[arg(long, value_name = "UID")]
    pod: Option<String>,
}

fn sequence(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_SEQUENCE);
    number.ok_or_else(|| format!("write a whole number from 0 to {MAX_SEQUENCE}"))
}

#[derive(Debug, Args)]
pub(super) struct StopTimes {
    /// Be unready this long before the stop signal is sent
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    drain: Option<Span>,
    /// Kill this long after the stop signal
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    grace: Option<Span>,
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// Only on the mounted config with this checksum
    #[arg(long, value_name = "C", conflicts_with = "last_good")]
    pub(super) checksum: Option<String>,
    /// On the kept copy of the config that last became ready
    #[arg(long)]
    pub(super) last_good: bool,
}

#[derive(Debug, Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    times: StopTimes,
    #[command(flatten)]
    fence: Fence,
}

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    fence: Fence,
}

#[derive(Debug, Args)]
pub(super) struct RestartArgs {
    #[command(flatten)]
    times: StopTimes,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Only if this is the pod's uid
    #[arg(long, value_name = "UID")]
    pod: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ChecksumArgs {
    /// The directories, as --config of `run` names them
    #[arg(value_name = "[NAME=]DIR", required = true, value_parser = settings::config_dir)]
    pub(super) dirs: Vec<ConfigDir>,
    /// Files that are not in the checksum, as --live of `run` names them; repeatable
    #[arg(long, value_name = "GLOB", value_parser = settings::glob)]
    pub(super) live: Vec<glob::Pattern>,
    /// Print the listing that the checksum is the SHA-256 of, and the checksum on stderr
    #[arg(long)]
    pub(super) files: bool,
}

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// The shared key the manager has as --jwt-key
    #[arg(long, value_name = "FILE")]
    pub(super) key: PathBuf,
    /// What its bearer may do: read, or control, which includes it
    #[arg(long, value_parser = ["read", "control"])]
    pub(super) scope: String,
    /// Which manager it is for: stayput:NAMESPACE/POD-UID, or its --jwt-audience
    #[arg(long, value_name = "AUDIENCE")]
    pub(super) audience: String,
    /// How long it is good, at most 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = Span::parse)]
    pub(super) ttl: Span,
}

impl StopArgs {
    pub(super) fn into_request(self) -> StopRequest {
        let Self { times: StopTimes { drain, grace }, fence: Fence { sequence, pod } } = self;
        StopRequest { sequence, pod, grace, drain }
    }
}

impl StartArgs {
    pub(super) fn into_request(self) -> StartRequest {
        let Self { config, fence: Fence { sequence, pod } } = self;
        let choice = config.choice();
        StartRequest { sequence, pod, checksum: config.checksum, config: choice }
    }
}

impl RestartArgs {
    pub(super) fn into_requests(self) -> (StopRequest, StartRequest) {
        let Self { times: StopTimes { drain, grace }, config, pod } = self;
        let choice = config.choice();
        (
            StopRequest { sequence: None, pod: pod.clone(), grace, drain },
            StartRequest { sequence: None, pod, checksum: config.checksum, config: choice },
        )
    }
}

impl ConfigArgs {
    const fn choice(&self) -> ConfigChoice {
        if self.last_good { ConfigChoice::LastGood } else { ConfigChoice::Mounted }
    }
}
