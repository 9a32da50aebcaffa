//! Arguments and options of the `stayput` command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};

use super::wait::Goal;
use crate::config_watch::ConfigDir;
use crate::settings::{self, RunArgs};
use stayput_api::{ConfigChoice, MAX_SEQUENCE, Span, StartRequest, StopRequest};

/// Version and platform, as `version` and `--version` print them.
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
run ends with the engine's code. A TIME is written as 90s, 2m or 500ms; 90 is 90 s.";

const WITHOUT_PROBE: &str = "\
If the manager has no --ready probe, an engine counts as running and ready once it has run for \
10 s.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run COMMAND and supervise it, as PID 1 or as child subreaper
    #[command(override_usage = "stayput run [OPTIONS] -- COMMAND [ARG]...")]
    Run(Box<RunArgs>),
    /// Show the state of the engine, and what it waits for
    Status {
        #[command(flatten)]
        client: ClientArgs,
        /// Print the API's answer as it is
        #[arg(long)]
        json: bool,
        /// Keep watching, and print a line for each change
        #[arg(long)]
        watch: bool,
    },
    /// Stop the engine; pod and manager keep running
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
    /// Stop the engine, wait until all its processes have ended, start it
    #[command(after_help = WITHOUT_PROBE)]
    Restart {
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        request: RestartArgs,
        #[command(flatten)]
        wait: TimeoutArgs,
    },
    /// Wait until the engine has a state; changes nothing
    #[command(after_help = WITHOUT_PROBE)]
    Wait {
        #[command(flatten)]
        client: ClientArgs,
        /// stopped, running, ready, or checksum=C (the config with that checksum is mounted)
        #[arg(long = "for", value_name = "GOAL")]
        goal: Goal,
        /// How long to wait
        #[arg(long, value_name = "TIME", default_value = DEFAULT_TIMEOUT, value_parser = Span::parse,
              allow_hyphen_values = true)]
        timeout: Span,
        /// Print the API's last answer as it is
        #[arg(long)]
        json: bool,
    },
    /// Print the checksum of the engine's config, as the status shows it
    Checksum(ChecksumArgs),
    /// Make a token (JWT) for curl
    Token(TokenArgs),
    /// Copy this program into DIR (for an init container), and print its path
    Install {
        /// An existing directory
        dir: PathBuf,
    },
    /// Run the engine once on throwaway data and keep its loaded classes in an archive, so that it
    /// starts faster (for an image build or an init container)
    #[command(override_usage = "stayput warm [OPTIONS] -- COMMAND [ARG]...")]
    Warm(WarmArgs),
    /// Let the version of stayput that is now in the manager's file take over; the engine runs on
    Upgrade {
        #[command(flatten)]
        client: ClientArgs,
        /// How long to wait until it has taken over
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = Span::parse,
              allow_hyphen_values = true)]
        timeout: Span,
    },
    /// Say whether this program can take over (called by `upgrade`)
    #[command(hide = true)]
    CheckUpgrade {
        /// Descriptor of what is handed over
        #[arg(long)]
        state: i32,
        /// Arguments of the manager
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Print version and platform
    Version,
}

/// How long a command waits by default: Elasticsearch may take minutes to end and to be ready.
const DEFAULT_TIMEOUT: &str = "10m";

/// How to reach the manager.
#[derive(Debug, Default, Args)]
pub(super) struct ClientArgs {
    /// Unix socket of the manager [env: STAYPUT_SOCKET] [default: /run/stayput/stayput.sock]
    #[arg(long, value_name = "PATH", help_heading = "Manager", conflicts_with = "url")]
    pub(super) socket: Option<PathBuf>,
    /// Address of the manager, https://HOST:PORT [env: STAYPUT_URL]
    #[arg(long, value_name = "URL", help_heading = "Manager")]
    pub(super) url: Option<String>,
    /// File with the token (JWT) to send [env: STAYPUT_TOKEN_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) token_file: Option<PathBuf>,
    /// CA of the manager's certificate (PEM) [env: STAYPUT_CA]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) ca: Option<PathBuf>,
    /// Client certificate (PEM) [env: STAYPUT_CERT]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) cert: Option<PathBuf>,
    /// Key of the client certificate (PEM) [env: STAYPUT_KEY]
    #[arg(long, value_name = "FILE", help_heading = "Manager")]
    pub(super) key: Option<PathBuf>,
}

/// Options that say whether to wait for the end of a stop or start, and how long.
#[derive(Debug, Args)]
pub(super) struct WaitArgs {
    /// Return as soon as the request is accepted
    #[arg(long, conflicts_with = "timeout")]
    pub(super) no_wait: bool,
    #[command(flatten)]
    pub(super) timeout: TimeoutArgs,
}

#[derive(Debug, Args)]
pub(super) struct TimeoutArgs {
    /// How long to wait until it is done; the request stays in force after that
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIMEOUT, value_parser = Span::parse,
          allow_hyphen_values = true)]
    pub(super) timeout: Span,
    /// Print the API's last answer as it is
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct FencingArgs {
    /// Sequence of the request [default: the next one]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sequence)]
    sequence: Option<u64>,
    /// Refuse unless the pod has this uid
    #[arg(long, value_name = "UID")]
    pod: Option<String>,
}

fn sequence(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_SEQUENCE);
    number.ok_or_else(|| format!("write a whole number from 0 to {MAX_SEQUENCE}"))
}

#[derive(Debug, Args)]
pub(super) struct StopTimes {
    /// Time from failing /readyz to the stop signal
    #[arg(long, value_name = "TIME", value_parser = Span::parse, allow_hyphen_values = true)]
    drain: Option<Span>,
    /// Time from the stop signal to KILL
    #[arg(long, value_name = "TIME", value_parser = Span::parse, allow_hyphen_values = true)]
    grace: Option<Span>,
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// Start only if the mounted config has this checksum
    #[arg(long, value_name = "C", conflicts_with = "last_good")]
    pub(super) checksum: Option<String>,
    /// Start with the kept copy of the config that was last ready and then up for a minute
    #[arg(long)]
    pub(super) last_good: bool,
}

#[derive(Debug, Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    times: StopTimes,
    /// Let the manager start the engine by itself after this time, unless a later request is
    /// accepted before
    #[arg(long, value_name = "TIME", value_parser = resume_after)]
    resume_after: Option<Span>,
    /// Start it then only with this config, mounted or the last good one
    #[arg(long, value_name = "C", requires = "resume_after")]
    resume_checksum: Option<String>,
    /// End the manager when the engine is stopped: the kubelet makes a new container, and the engine
    /// stays stopped
    #[arg(long)]
    exit: bool,
    #[command(flatten)]
    fencing: FencingArgs,
}

fn resume_after(text: &str) -> Result<Span, String> {
    match Span::parse(text)? {
        span if span < StopRequest::MIN_RESUME_AFTER => Err("1s is the shortest time".into()),
        span => Ok(span),
    }
}

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    fencing: FencingArgs,
}

#[derive(Debug, Args)]
pub(super) struct RestartArgs {
    #[command(flatten)]
    times: StopTimes,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Refuse unless the pod has this uid
    #[arg(long, value_name = "UID")]
    pod: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ChecksumArgs {
    /// Directories, written as for --config of `run`
    #[arg(value_name = "[NAME=]DIR", required = true, value_parser = settings::config_dir)]
    pub(super) dirs: Vec<ConfigDir>,
    /// Files that are not in the checksum, written as for --live of `run`; repeatable
    #[arg(long, value_name = "GLOB", value_parser = settings::glob)]
    pub(super) live: Vec<glob::Pattern>,
    /// Print the listing whose SHA-256 is the checksum; the checksum goes to stderr
    #[arg(long)]
    pub(super) files: bool,
}

#[derive(Debug, Args)]
pub(super) struct WarmArgs {
    /// Where to write the archive; it must have the same path in the engine's container
    #[arg(long, value_name = "FILE")]
    pub(super) archive: PathBuf,
    /// Where to write the JVM option that names it: a new file in the engine's jvm.options.d
    #[arg(long, value_name = "FILE")]
    pub(super) options: PathBuf,
    /// The engine's JVM [default: OPENSEARCH_JAVA_HOME, ES_JAVA_HOME or JAVA_HOME]
    #[arg(long, value_name = "DIR")]
    pub(super) java_home: Option<PathBuf>,
    /// For an init container: give up after this time, and end with code 0 also without an archive, so
    /// that the pod starts. It is tried once only for each archive, and not checked by a second run
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub(super) best_effort: Option<Span>,
    /// The engine's command, as for `run`
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// Shared key, as the manager has it with --jwt-key
    #[arg(long, value_name = "FILE")]
    pub(super) key: PathBuf,
    /// Scope: read, or control (includes read)
    #[arg(long, value_parser = ["read", "control"])]
    pub(super) scope: String,
    /// Manager it is for: stayput:NAMESPACE/POD-UID, or its --jwt-audience
    #[arg(long, value_name = "AUDIENCE")]
    pub(super) audience: String,
    /// How long it is valid, at most 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = Span::parse)]
    pub(super) ttl: Span,
}

impl StopArgs {
    pub(super) fn into_request(self) -> StopRequest {
        let Self {
            times: StopTimes { drain, grace },
            resume_after,
            resume_checksum,
            exit,
            fencing: FencingArgs { sequence, pod },
        } = self;
        StopRequest { sequence, pod, grace, drain, resume_after, resume_checksum, exit }
    }
}

impl StartArgs {
    pub(super) fn into_request(self) -> StartRequest {
        let Self { config, fencing: FencingArgs { sequence, pod } } = self;
        let choice = config.choice();
        StartRequest { sequence, pod, checksum: config.checksum, config: choice }
    }
}

impl RestartArgs {
    pub(super) fn into_requests(self) -> (StopRequest, StartRequest) {
        let Self { times: StopTimes { drain, grace }, config, pod } = self;
        let choice = config.choice();
        (
            StopRequest { pod: pod.clone(), grace, drain, ..StopRequest::default() },
            StartRequest { sequence: None, pod, checksum: config.checksum, config: choice },
        )
    }
}

impl ConfigArgs {
    const fn choice(&self) -> ConfigChoice {
        if self.last_good { ConfigChoice::LastGood } else { ConfigChoice::Mounted }
    }
}
