//! From written options to checked settings: reads every value, then checks rules between options.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use tracing::level_filters::LevelFilter;

use super::args::{self, Written, variable};
use super::{Environment, LogSettings, Settings, pod, values};
use crate::config_watch::ConfigSettings;
use crate::http::{HttpSettings, TlsMin};
use crate::lifecycle::{Millis, OnExit, Policy};
use crate::supervisor::Probe;
use stayput_api::Span;
use stayput_net::telemetry::LogFormat;

pub(super) fn check(
    written: Written,
    environment: &Environment,
    on_terminal: bool,
) -> Result<Settings, Vec<String>> {
    let Written { args, from_environment, problems, bare } = written;
    let mut read = Reader { from_environment, problems, unread: BTreeSet::new() };

    let identity = pod::read(environment).unwrap_or_else(|problems| {
        read.problems.extend(problems);
        stayput_api::Pod::default()
    });
    let http = HttpSettings {
        listen: read.one("listen", args.listen, crate::http::parse_listen),
        socket: read.one("socket", args.socket, values::path),
        tls_cert: read.one("tls-cert", args.tls_cert, values::path),
        tls_key: read.one("tls-key", args.tls_key, values::path),
        tls_min: read.one("tls-min", args.tls_min, str::parse::<TlsMin>),
        client_ca: read.one("client-ca", args.client_ca, values::path),
        allow_client: read.list("allow-client", args.allow_client, values::grant),
        jwt_key: read.one("jwt-key", args.jwt_key, values::path),
        jwt_public_key: read.one("jwt-public-key", args.jwt_public_key, values::path),
        jwks: read.one("jwks", args.jwks, values::path),
        jwt_issuer: read.one("jwt-issuer", args.jwt_issuer, text),
        jwt_audience: read.one("jwt-audience", args.jwt_audience, text),
        allow_subject: read.list("allow-subject", args.allow_subject, values::grant),
        allow_uid: read.list("allow-uid", args.allow_uid, values::uid),
        insecure_no_auth: read.flag("insecure-no-auth", args.insecure_no_auth),
        open_metrics: read.flag("open-metrics", args.open_metrics),
        pod: identity,
    };
    let api = http.listen.is_some() || http.socket.is_some();

    let dirs = read.list("config", args.config, values::mounted_dir);
    let live = read.list("live", args.live, values::glob);
    let stage = read.list("stage", args.stage, values::stage);
    let keep_last_good = read.flag("keep-last-good", args.keep_last_good);
    let pin_config = read.flag("pin-config", args.pin_config);
    let state_dir = read.one("state-dir", args.state_dir, values::path);

    let ready = read.one("ready", args.ready, values::probe);
    let ready_ca = read.one("ready-ca", args.ready_ca, values::path);
    let ready_auth = read.one("ready-auth", args.ready_auth, values::path);
    let ready = read.probe(ready, ready_ca, ready_auth);
    let config = ConfigSettings {
        dirs,
        live,
        stage,
        // Without a state directory the settings are refused below.
        keep_last_good: keep_last_good
            .then(|| state_dir.clone().unwrap_or_default().join(KEPT_CONFIGS)),
        ..ConfigSettings::default()
    };
    let policy = Policy {
        api,
        pod: http.pod.uid.clone(),
        stop_signal: read
            .one("stop-signal", args.stop_signal, values::signal)
            .unwrap_or(Signal::SIGTERM as i32),
        grace: read.span("grace", args.grace, 120_000),
        tree_grace: read.span("tree-grace", args.tree_grace, 2_000),
        drain: read.span("drain", args.drain, 0),
        termination_grace: read
            .one("termination-grace", args.termination_grace, Span::parse)
            .map(|span| span.0),
        thread_dump: read.one("thread-dump", args.thread_dump, values::boolean).unwrap_or(true),
        on_exit: read.one("on-exit", args.on_exit, values::on_exit).unwrap_or(OnExit::Exit),
        success_exit: read.list("success-exit", args.success_exit, values::exit_code),
        probe: ready.is_some(),
        staged: config.all_staged(),
        keep_last_good: config.keep_last_good.is_some(),
        pin_config,
        seed: 0,
    };
    let tmp_dir = read.one("tmp-dir", args.tmp_dir, values::path);

    // Log collectors parse the engine's JSON lines from a container, so the manager's log has that
    // form; on a terminal it is text. Without options the manager replaces an init, which logs
    // nothing.
    let format = if on_terminal { LogFormat::Text } else { LogFormat::Ecs };
    let options = args::variables();
    let is_option =
        |name: &str| options.iter().any(|own| own == name) || pod::VARIABLES.contains(&name);
    let warnings: Vec<String> = environment
        .unknown(is_option)
        .map(|name| format!("{name} is no setting of stayput and is ignored: is it a typo?"))
        .collect();
    let level = match (bare, warnings.is_empty()) {
        (true, true) => LevelFilter::ERROR,
        // Somebody meant to set something.
        (true, false) => LevelFilter::WARN,
        (false, _) => LevelFilter::INFO,
    };
    let log = LogSettings {
        format: read.one("log-format", args.log_format, str::parse::<LogFormat>).unwrap_or(format),
        level: read.one("log-level", args.log_level, values::log_level).unwrap_or(level),
    };

    if args.command.is_empty() {
        read.problem("the engine's command is missing: write it after --, as in -- COMMAND ARG…");
    }
    if api && state_dir.is_none() && read.all_read(&["state-dir"]) {
        let name = read.name(if http.listen.is_some() { "listen" } else { "socket" });
        read.problem(format!(
            "{name} needs --state-dir: a stop must survive a restart of the container"
        ));
    }
    let api_read = read.all_read(&["listen", "socket"]);
    if policy.on_exit == OnExit::Hold && !api && api_read {
        let name = read.name("on-exit");
        read.problem(format!(
            "{name}: hold needs --socket or --listen: without an API no start is possible"
        ));
    }
    if state_dir.is_some() && !api && api_read {
        let name = read.name("state-dir");
        read.problem(format!(
            "{name} needs --socket or --listen: without an API there is nothing to remember"
        ));
    }
    if policy.termination_grace.is_some_and(|bound| bound <= policy.drain)
        && read.all_read(&["drain"])
    {
        let name = read.name("termination-grace");
        read.problem(format!("{name} must be longer than --drain, which it includes"));
    }
    if config.dirs.is_empty() && !config.live.is_empty() && read.all_read(&["config"]) {
        let name = read.name("live");
        read.problem(format!("{name} needs --config: its patterns are for files in there"));
    }
    if keep_last_good && state_dir.is_none() && read.all_read(&["state-dir"]) {
        let name = read.name("keep-last-good");
        read.problem(format!("{name} needs --state-dir: the copy is kept in there"));
    }
    if keep_last_good && !policy.probe && read.all_read(&["ready"]) {
        let name = read.name("keep-last-good");
        read.problem(format!(
            "{name} needs --ready, such as --ready http://127.0.0.1:9200/: without a probe, a \
             config with which the engine soon ends counts as good"
        ));
    }
    if pin_config && !keep_last_good && read.all_read(&["keep-last-good"]) {
        let name = read.name("pin-config");
        read.problem(format!(
            "{name} needs --keep-last-good and --stage: the config is kept and started in the \
             same way"
        ));
    }
    if read.all_read(&HTTP_OPTIONS) {
        let by_variables =
            HTTP_OPTIONS.iter().any(|option| read.from_environment.contains(*option));
        let problems = http.validate().into_iter().map(|problem| match by_variables {
            true => with_variables(problem),
            false => problem.to_owned(),
        });
        read.problems.extend(problems);
    }
    if read.all_read(&["config", "stage"]) {
        read.problems.extend(config.problems());
    }

    if !read.problems.is_empty() {
        return Err(read.problems);
    }
    let command = args.command;
    Ok(Settings { command, http, config, policy, ready, state_dir, tmp_dir, log, warnings })
}

/// Those that [`HttpSettings::validate`] has rules about.
const HTTP_OPTIONS: [&str; 11] = [
    "listen",
    "tls-cert",
    "tls-key",
    "client-ca",
    "allow-client",
    "jwt-key",
    "jwt-public-key",
    "jwks",
    "jwt-issuer",
    "jwt-audience",
    "allow-subject",
];

/// A message with the variable in place of each option: an image that sets variables takes others too,
/// but no further options in front of its command.
fn with_variables(message: &str) -> String {
    let word = |word: &str| {
        let (name, after) = word.split_at(word.trim_end_matches([',', ':', ')']).len());
        match name.strip_prefix("--") {
            Some(option) => variable(option) + after,
            None => word.to_owned(),
        }
    };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Directory of the kept configs, inside the state directory.
const KEPT_CONFIGS: &str = "configs";

/// Reads values and collects what is wrong with them.
struct Reader {
    from_environment: BTreeSet<String>,
    problems: Vec<String>,
    /// Options whose value cannot be used.
    unread: BTreeSet<String>,
}

impl Reader {
    fn problem(&mut self, message: impl Into<String>) {
        self.problems.push(message.into());
    }

    /// Adds the files to the probe, if they fit it.
    fn probe(
        &mut self,
        probe: Option<Probe>,
        ca: Option<PathBuf>,
        auth: Option<PathBuf>,
    ) -> Option<Probe> {
        if !self.all_read(&["ready", "ready-ca"]) {
            return probe;
        }
        let (is_https, is_http) = match &probe {
            Some(Probe::Http { tls, .. }) => (*tls, true),
            Some(Probe::Tcp { .. }) | None => (false, false),
        };
        let is_safe = probe.as_ref().is_none_or(Probe::is_loopback) || (is_https && ca.is_some());
        let (ca_name, auth_name) = (self.name("ready-ca"), self.name("ready-auth"));
        if ca.is_some() && !is_https {
            self.problem(format!(
                "{ca_name} needs --ready https://…: nothing else has a certificate"
            ));
        }
        if auth.is_some() && !is_http {
            self.problem(format!(
                "{auth_name} needs --ready https://… or http://…: nothing else has users"
            ));
        } else if auth.is_some() && !is_safe {
            self.problem(format!(
                "{auth_name} needs --ready https://… with --ready-ca, or an address on loopback: to another \
                 machine, a password goes only where a certificate proves who gets it"
            ));
        }
        match probe {
            Some(Probe::Http { address, path, tls, .. }) => {
                Some(Probe::Http { address, path, tls, ca, auth })
            }
            other => other,
        }
    }

    /// Whether rules about these options can be checked: one mistake gets one message, so an option
    /// whose value cannot be used does not count as left out.
    fn all_read(&self, options: &[&str]) -> bool {
        !options.iter().any(|option| self.unread.contains(*option))
    }

    /// The name under which an option was set: the variable or the option.
    fn name(&self, option: &str) -> String {
        if self.from_environment.contains(option) {
            variable(option)
        } else {
            format!("--{option}")
        }
    }

    fn one<T, E: Display>(
        &mut self,
        option: &str,
        value: Option<OsString>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let value = value?;
        let message = match value.to_str() {
            Some("") => "the value is empty".to_owned(),
            Some(text) => match read(text) {
                Ok(value) => return Some(value),
                Err(error) => error.to_string(),
            },
            None => format!("{value:?} is not UTF-8"),
        };
        let name = self.name(option);
        self.problem(format!("{name}: {message}"));
        self.unread.insert(option.to_owned());
        None
    }

    fn list<T, E: Display>(
        &mut self,
        option: &str,
        values: Vec<OsString>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        values.into_iter().filter_map(|value| self.one(option, Some(value), &read)).collect()
    }

    fn flag(&mut self, option: &str, value: Option<OsString>) -> bool {
        self.one(option, value, values::boolean).unwrap_or(false)
    }

    fn span(&mut self, option: &str, value: Option<OsString>, default: Millis) -> Millis {
        self.one(option, value, Span::parse).map_or(default, |span| span.0)
    }
}

/// Any text; [`Reader::one`] refuses the empty one.
fn text(text: &str) -> Result<String, Infallible> {
    Ok(text.to_owned())
}
