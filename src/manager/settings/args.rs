//! The options of `run` as they were written, on the command line or in the environment.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::Environment;

/// Options of `run`. Values stay as written, so that all bad ones are reported together.
#[derive(Debug, Default, Args)]
#[command(mut_args = name_variable, after_help = AFTER_HELP)]
#[group(skip)]
pub struct RunArgs {
    /// Serve the API over TLS at ADDR, such as :9199 (all interfaces) or 127.0.0.1:9199
    #[arg(long, value_name = "ADDR", help_heading = "API")]
    pub(super) listen: Option<OsString>,
    /// Serve the API at this unix socket
    #[arg(long, value_name = "PATH", help_heading = "API")]
    pub(super) socket: Option<OsString>,
    /// Certificate chain of the API (PEM)
    #[arg(long, value_name = "FILE", help_heading = "API")]
    pub(super) tls_cert: Option<OsString>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", help_heading = "API")]
    pub(super) tls_key: Option<OsString>,
    /// Oldest TLS version that the API accepts: 1.3 or 1.2 [default: 1.3]
    #[arg(long, value_name = "VERSION", help_heading = "API")]
    pub(super) tls_min: Option<OsString>,
    /// Make /metrics readable without credentials
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = "API")]
    pub(super) open_metrics: Option<OsString>,

    /// CA of client certificates (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub(super) client_ca: Option<OsString>,
    /// Scope of clients with this DNS or URI SAN: read, or control (includes read); repeatable
    #[arg(long, value_name = "NAME=SCOPE", help_heading = "Authentication")]
    pub(super) allow_client: Vec<OsString>,
    /// Shared key of HS256 tokens
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub(super) jwt_key: Option<OsString>,
    /// Public key of ES256, RS256 or EdDSA tokens (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub(super) jwt_public_key: Option<OsString>,
    /// Key set of projected service-account tokens
    #[arg(long, value_name = "FILE", help_heading = "Authentication")]
    pub(super) jwks: Option<OsString>,
    /// Issuer that tokens of the key set must have
    #[arg(long, value_name = "ISSUER", help_heading = "Authentication")]
    pub(super) jwt_issuer: Option<OsString>,
    /// Audience that tokens must have where the pod's own identity is not known
    #[arg(long, value_name = "AUDIENCE", help_heading = "Authentication")]
    pub(super) jwt_audience: Option<OsString>,
    /// Scope of tokens of the key set with this subject: read, or control; repeatable
    #[arg(long, value_name = "NAME=SCOPE", help_heading = "Authentication")]
    pub(super) allow_subject: Vec<OsString>,
    /// User id that may use the socket, beside root and the manager's own; repeatable
    #[arg(long, value_name = "UID", help_heading = "Authentication")]
    pub(super) allow_uid: Vec<OsString>,
    /// Accept every request without authentication; only on a loopback address
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = "Authentication")]
    pub(super) insecure_no_auth: Option<OsString>,

    /// Directory of the engine's config; repeatable, then each with a NAME
    #[arg(long, value_name = "[NAME=]DIR", help_heading = "Engine config")]
    pub(super) config: Vec<OsString>,
    /// Files the engine reloads by itself: in the status, not in the checksum; repeatable
    #[arg(long, value_name = "GLOB", help_heading = "Engine config")]
    pub(super) live: Vec<OsString>,
    /// At each start, copy the verified config SRC to DST, which the engine reads; repeatable
    #[arg(long, value_name = "SRC=DST", help_heading = "Engine config")]
    pub(super) stage: Vec<OsString>,
    /// Keep a copy of the config that last proved itself: ready by --ready, and up for a minute (it
    /// holds the config's secrets, and needs room for five configs and 1 MiB in the state directory)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = "Engine config")]
    pub(super) keep_last_good: Option<OsString>,
    /// Start an engine that comes back by itself on the config it was last told to run, not on what
    /// is mounted
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = "Engine config")]
    pub(super) pin_config: Option<OsString>,

    /// Directory of the journal, so that a stop survives a restart of the container. As root, it is closed
    /// to other users
    #[arg(long, value_name = "DIR", help_heading = "Engine")]
    pub(super) state_dir: Option<OsString>,
    /// Directory in which the engine's temporary directory is made; it is emptied before each run
    #[arg(long, value_name = "DIR", help_heading = "Engine")]
    pub(super) tmp_dir: Option<OsString>,
    /// JSON object with variables of the engine, read at each start: strings are set, null removes
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub(super) environment: Option<OsString>,
    /// The engine is ready when this answers within 1s: http://…, https://… or tcp://HOST:PORT
    #[arg(long, value_name = "URL", help_heading = "Engine")]
    pub(super) ready: Option<OsString>,
    /// CA of the engine's certificate, for an https probe (PEM); without it any certificate will do
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub(super) ready_ca: Option<OsString>,
    /// Credentials of the probe: a file with USER:PASSWORD or an Authorization header such as ApiKey KEY, or
    /// the directory of a mounted Secret with username and password, apiKey, or elastic
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub(super) ready_auth: Option<OsString>,
    /// Signal that asks the engine to end [default: TERM]
    #[arg(long, value_name = "SIGNAL", help_heading = "Engine")]
    pub(super) stop_signal: Option<OsString>,
    /// Time from the stop signal to KILL; after TERM to the manager, --termination-grace counts instead
    /// [default: 120s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Engine")]
    pub(super) grace: Option<OsString>,
    /// Time from TERM to KILL for processes that outlive the engine [default: 2s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Engine")]
    pub(super) tree_grace: Option<OsString>,
    /// Time from failing /readyz to the stop signal [default: 0s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Engine")]
    pub(super) drain: Option<OsString>,
    /// Limit for the whole stop after a TERM to the manager [default: none, kubelet's applies]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Engine")]
    pub(super) termination_grace: Option<OsString>,
    /// Ask a JVM for a thread dump before it is killed [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Engine")]
    pub(super) thread_dump: Option<OsString>,
    /// When the engine ends by itself: exit, restart or hold [default: exit]
    #[arg(long, value_name = "WHAT", help_heading = "Engine")]
    pub(super) on_exit: Option<OsString>,
    /// Exit code that becomes 0 after a stop by the manager, such as 143; repeatable
    #[arg(long, value_name = "CODE", help_heading = "Engine")]
    pub(super) success_exit: Vec<OsString>,

    /// ecs or text [default: text on a terminal, else ecs, as the engine's own log in a container]
    #[arg(long, value_name = "FORMAT", help_heading = "Log")]
    pub(super) log_format: Option<OsString>,
    /// error, warn, info, debug or trace [default: info; error if there is no option at all]
    #[arg(long, value_name = "LEVEL", help_heading = "Log")]
    pub(super) log_level: Option<OsString>,

    /// The engine's command, passed on as given
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
A TIME is written as 90s, 2m or 500ms; 90 is 90 s. A relative path is one of the working directory. \
Each option can be set by the environment variable named with it; the command line wins. Options \
that can be repeated take a list there, separated by commas or newlines. STAYPUT_POD_NAMESPACE, \
STAYPUT_POD_NAME and STAYPUT_POD_UID, from the downward API, identify the pod.";

/// Options as they were written, and the places where they were written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) args: RunArgs,
    /// Long names of the options that came from the environment.
    pub(super) from_environment: BTreeSet<String>,
    /// The variables of all options, if any variable of ours is set.
    pub(super) variables: Vec<String>,
    /// Messages about variables that cannot be used as written.
    pub(super) problems: Vec<String>,
    /// True if no option at all was given.
    pub(super) bare: bool,
}

/// Reads the options from the environment, then from the command line, which takes precedence.
pub(super) fn written(cli: &ArgMatches, environment: &Environment) -> Written {
    let mut written = Written::default();
    // Making the table of options is a good part of all that a start takes.
    if !environment.is_empty() {
        written.read_environment(cli, environment);
    }
    written.update(Ok(cli));
    written.bare = written.from_environment.is_empty() && cli.ids().all(|id| id == "command");
    written
}

impl Written {
    /// Turns the environment into arguments, so that there is one parser and one table of options.
    fn read_environment(&mut self, cli: &ArgMatches, environment: &Environment) {
        let command = RunArgs::augment_args(Command::new("run")).no_binary_name(true);
        let mut lines: Vec<OsString> = Vec::new();
        for (id, long, action) in command
            .get_arguments()
            .filter_map(|arg| Some((arg.get_id().as_str(), arg.get_long()?, arg.get_action())))
        {
            let variable = variable(long);
            let is_given = cli.ids().any(|given| given == id);
            if let Some(value) = environment.get(&variable).filter(|_| !is_given) {
                match items(&variable, value, action) {
                    Ok(items) => {
                        self.from_environment.insert(long.to_owned());
                        lines.extend(items.into_iter().map(|item| {
                            let mut line = OsString::from(format!("--{long}="));
                            line.push(item);
                            line
                        }));
                    }
                    Err(problem) => self.problems.push(problem),
                }
            }
            self.variables.push(variable);
        }
        if !lines.is_empty() {
            self.update(command.try_get_matches_from(lines).as_ref());
        }
    }

    fn update(&mut self, source: Result<&ArgMatches, &clap::Error>) {
        let updated = source.map_err(ToString::to_string).and_then(|matches| {
            self.args.update_from_arg_matches(matches).map_err(|error| error.to_string())
        });
        // Every option takes any value here, so an error is a bug of this program; it is reported
        // all the same.
        if let Err(error) = updated {
            self.problems.push(error);
        }
    }
}

/// The values in a variable: several, if the option can be repeated.
fn items(variable: &str, value: &OsStr, action: &ArgAction) -> Result<Vec<OsString>, String> {
    let items = match action {
        ArgAction::Append => super::values::split(value),
        _ => vec![value.to_owned()],
    };
    if items.iter().all(|item| item.is_empty()) {
        return Err(format!("{variable} is set, but empty: give it a value or unset it"));
    }
    if items.iter().any(|item| item.is_empty()) {
        return Err(format!(
            "{variable} is {value:?}, where one item of the list is empty: is there a comma too \
             many?"
        ));
    }
    Ok(items)
}

/// The environment variable of an option: `tls-cert` → `STAYPUT_TLS_CERT`.
pub(super) fn variable(long: &str) -> String {
    format!("STAYPUT_{}", long.to_ascii_uppercase().replace('-', "_"))
}

/// Adds the environment variable to an option's help.
fn name_variable(arg: clap::Arg) -> clap::Arg {
    match (arg.get_long().map(variable), arg.get_help().map(ToString::to_string)) {
        (Some(variable), Some(help)) => arg.help(format!("{help} [env: {variable}]")),
        _ => arg,
    }
}
