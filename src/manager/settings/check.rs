//! From written options to checked settings: reads every value, then checks rules between options.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use tracing::level_filters::LevelFilter;

use super::args::{RunArgs, Written, variable};
use super::{Environment, LogSettings, Settings, values};
use crate::config_watch::ConfigSettings;
use crate::http::{HttpSettings, TlsMin};
use crate::lifecycle::{Millis, OnExit, Policy};
use crate::supervisor::Probe;
use stayput_api::{Pod, Span};
use stayput_http::telemetry::LogFormat;

pub(super) fn check(
    written: Written,
    environment: &Environment,
    on_terminal: bool,
) -> Result<Settings, Vec<String>> {
    let Written { args, from_environment, variables, problems, bare } = written;
    let mut read = Reader { from_environment, problems, unread: BTreeSet::new() };

    let pod = values::read_pod(environment).unwrap_or_else(|problems| {
        read.problems.extend(problems);
        Pod::default()
    });
    let http = http(&mut read, &args, pod);
    let (config, state_dir) = config(&mut read, &args);
    let ready = probe(&mut read, &args);
    let policy = Policy {
        api: http.listen.is_some() || http.socket.is_some(),
        pod: http.pod.uid.clone(),
        probe: ready.is_some(),
        staged: config.all_staged(),
        keep_last_good: config.keep_last_good.is_some(),
        ..policy(&mut read, &args)
    };
    let tmp_dir = read.one("tmp-dir", &args.tmp_dir, values::path);
    let engine_environment = read.one("environment", &args.environment, values::path);
    let mut warnings = warnings(environment, &variables);
    warnings.extend(short_grace(&policy));
    let level = match (bare, warnings.is_empty()) {
        (true, true) => LevelFilter::ERROR,
        // Somebody meant to set something.
        (true, false) => LevelFilter::WARN,
        (false, _) => LevelFilter::INFO,
    };
    let log = log(&mut read, &args, on_terminal, level);

    let command = args.command;
    let settings = Settings {
        command,
        http,
        config,
        policy,
        ready,
        state_dir,
        tmp_dir,
        environment: engine_environment,
        log,
        warnings,
    };
    check_rules(&mut read, &settings);
    if read.problems.is_empty() { Ok(settings) } else { Err(read.problems) }
}

fn http(read: &mut Reader, args: &RunArgs, pod: Pod) -> HttpSettings {
    HttpSettings {
        listen: read.one("listen", &args.listen, crate::http::parse_listen),
        socket: read.one("socket", &args.socket, values::path),
        tls_cert: read.one("tls-cert", &args.tls_cert, values::path),
        tls_key: read.one("tls-key", &args.tls_key, values::path),
        tls_min: read.one("tls-min", &args.tls_min, str::parse::<TlsMin>),
        client_ca: read.one("client-ca", &args.client_ca, values::path),
        allow_client: read.list("allow-client", &args.allow_client, values::grant),
        jwt_key: read.one("jwt-key", &args.jwt_key, values::path),
        jwt_public_key: read.one("jwt-public-key", &args.jwt_public_key, values::path),
        jwks: read.one("jwks", &args.jwks, values::path),
        jwt_issuer: read.one("jwt-issuer", &args.jwt_issuer, text),
        jwt_audience: read.one("jwt-audience", &args.jwt_audience, text),
        allow_subject: read.list("allow-subject", &args.allow_subject, values::grant),
        allow_uid: read.list("allow-uid", &args.allow_uid, values::uid),
        insecure_no_auth: read.flag("insecure-no-auth", &args.insecure_no_auth),
        open_metrics: read.flag("open-metrics", &args.open_metrics),
        pod,
    }
}

/// The engine's config, and the state directory, in which configs are kept.
fn config(read: &mut Reader, args: &RunArgs) -> (ConfigSettings, Option<PathBuf>) {
    let dirs = read.list("config", &args.config, values::mounted_dir);
    let live = read.list("live", &args.live, values::glob);
    let stage = read.list("stage", &args.stage, values::stage);
    let keep_last_good = read.flag("keep-last-good", &args.keep_last_good);
    let state_dir = read.one("state-dir", &args.state_dir, values::path);
    // Without a state directory the settings are refused by a rule.
    let kept = keep_last_good.then(|| state_dir.clone().unwrap_or_default().join(KEPT_CONFIGS));
    (ConfigSettings { dirs, live, stage, keep_last_good: kept, ..Default::default() }, state_dir)
}

fn probe(read: &mut Reader, args: &RunArgs) -> Option<Probe> {
    let probe = read.one("ready", &args.ready, values::probe);
    let ca = read.one("ready-ca", &args.ready_ca, values::path);
    let auth = read.one("ready-auth", &args.ready_auth, values::path);
    check_probe(read, probe.as_ref(), ca.is_some(), auth.is_some());
    match probe {
        Some(Probe::Http { address, path, tls, .. }) => {
            Some(Probe::Http { address, path, tls, ca, auth })
        }
        other => other,
    }
}

/// The part of the policy that options alone decide.
fn policy(read: &mut Reader, args: &RunArgs) -> Policy {
    Policy {
        pin_config: read.flag("pin-config", &args.pin_config),
        stop_signal: read
            .one("stop-signal", &args.stop_signal, values::signal)
            .unwrap_or(Signal::SIGTERM as i32),
        grace: read.span("grace", &args.grace, 120_000),
        tree_grace: read.span("tree-grace", &args.tree_grace, 2_000),
        drain: read.span("drain", &args.drain, 0),
        termination_grace: read
            .one("termination-grace", &args.termination_grace, Span::parse)
            .map(|span| span.0),
        thread_dump: read.one("thread-dump", &args.thread_dump, values::boolean).unwrap_or(true),
        on_exit: read.one("on-exit", &args.on_exit, values::on_exit).unwrap_or(OnExit::Exit),
        success_exit: read.list("success-exit", &args.success_exit, values::exit_code),
        ..Policy::default()
    }
}

/// Log collectors parse the engine's JSON lines from a container, so the manager's log has that form;
/// on a terminal it is text. Without options the manager replaces an init, which logs nothing.
fn log(read: &mut Reader, args: &RunArgs, on_terminal: bool, level: LevelFilter) -> LogSettings {
    let format = if on_terminal { LogFormat::Text } else { LogFormat::Ecs };
    LogSettings {
        format: read.one("log-format", &args.log_format, str::parse::<LogFormat>).unwrap_or(format),
        level: read.one("log-level", &args.log_level, values::log_level).unwrap_or(level),
    }
}

/// Warnings about variables that nothing reads; `variables` are those of options.
fn warnings(environment: &Environment, variables: &[String]) -> Vec<String> {
    let is_option =
        |name: &str| variables.iter().any(|own| own == name) || values::VARIABLES.contains(&name);
    let unknown = environment.unknown(is_option);
    unknown
        .map(|name| format!("{name} is no setting of stayput and is ignored: is it a typo?"))
        .collect()
}

/// Less time than this is hardly enough for an engine to end by itself, in milliseconds.
const SHORT_GRACE: Millis = 5_000;

/// Warning about a drain that leaves the engine little of the time that the whole end may take.
fn short_grace(policy: &Policy) -> Option<String> {
    let left = policy.termination_grace?.checked_sub(policy.drain)?;
    (left < SHORT_GRACE).then(|| {
        format!(
            "--termination-grace leaves the engine {} ms after --drain, and then it is killed: raise it",
            left
        )
    })
}

/// Directory of the kept configs, inside the state directory.
const KEPT_CONFIGS: &str = "configs";

/// Reads values and collects the problems with them.
pub(super) struct Reader {
    from_environment: BTreeSet<String>,
    problems: Vec<String>,
    /// Options whose value cannot be used.
    unread: BTreeSet<String>,
}

impl Reader {
    pub(super) fn problem(&mut self, message: String) {
        self.problems.push(message);
    }

    /// Adds `message` about this option unless `holds`, if the `others` could be read: one mistake
    /// gets one message, so an option whose value cannot be used does not count as left out.
    pub(super) fn rule(&mut self, holds: bool, option: &str, others: &[&str], message: &str) {
        if !holds && self.all_read(others) {
            self.problem(format!("{}{message}", self.name(option)));
        }
    }

    pub(super) fn all_read(&self, options: &[&str]) -> bool {
        !options.iter().any(|option| self.unread.contains(*option))
    }

    pub(super) fn is_variable(&self, option: &str) -> bool {
        self.from_environment.contains(option)
    }

    /// The name under which an option was set: the variable or the option.
    fn name(&self, option: &str) -> String {
        if self.is_variable(option) { variable(option) } else { format!("--{option}") }
    }

    fn one<T, E: Display>(
        &mut self,
        option: &str,
        value: &Option<OsString>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.value(option, value.as_ref()?, read)
    }

    fn list<T, E: Display>(
        &mut self,
        option: &str,
        values: &[OsString],
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        values.iter().filter_map(|value| self.value(option, value, &read)).collect()
    }

    fn flag(&mut self, option: &str, value: &Option<OsString>) -> bool {
        self.one(option, value, values::boolean).unwrap_or(false)
    }

    fn span(&mut self, option: &str, value: &Option<OsString>, default: Millis) -> Millis {
        self.one(option, value, Span::parse).map_or(default, |span| span.0)
    }

    fn value<T, E: Display>(
        &mut self,
        option: &str,
        value: &OsString,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        match value.to_str() {
            Some("") => self.unusable(option, &"the value is empty"),
            Some(text) => match read(text) {
                Ok(value) => return Some(value),
                Err(error) => self.unusable(option, &error),
            },
            None => self.unusable(option, &format_args!("{value:?} is not UTF-8")),
        }
        None
    }

    fn unusable(&mut self, option: &str, why: &dyn Display) {
        self.problem(format!("{}: {why}", self.name(option)));
        self.unread.insert(option.to_owned());
    }
}

/// Any text; [`Reader::value`] refuses the empty one.
fn text(text: &str) -> Result<String, Infallible> {
    Ok(text.to_owned())
}

/// Options that [`HttpSettings::validate`] has rules about.
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

pub(super) fn check_rules(read: &mut Reader, settings: &Settings) {
    let Settings { http, config, policy, state_dir, .. } = settings;
    let (api, has_state_dir) = (policy.api, state_dir.is_some());
    if settings.command.is_empty() {
        read.problem(
            "the engine's command is missing: write it after --, as in -- COMMAND ARG…".to_owned(),
        );
    }
    read.rule(
        !api || has_state_dir,
        if http.listen.is_some() { "listen" } else { "socket" },
        &["state-dir"],
        " needs --state-dir: a stop must survive a restart of the container",
    );
    read.rule(
        policy.on_exit != OnExit::Hold || api,
        "on-exit",
        &["listen", "socket"],
        ": hold needs --socket or --listen: without an API no start is possible",
    );
    read.rule(
        !has_state_dir || api,
        "state-dir",
        &["listen", "socket"],
        " needs --socket or --listen: without an API there is nothing to remember",
    );
    read.rule(
        policy.termination_grace.is_none_or(|bound| bound > policy.drain),
        "termination-grace",
        &["drain"],
        " must be longer than --drain, which it includes",
    );
    read.rule(
        !config.dirs.is_empty() || config.live.is_empty(),
        "live",
        &["config"],
        " needs --config: its patterns are for files in there",
    );
    read.rule(
        !policy.keep_last_good || has_state_dir,
        "keep-last-good",
        &["state-dir"],
        " needs --state-dir: the copy is kept in there",
    );
    read.rule(
        !policy.keep_last_good || policy.probe,
        "keep-last-good",
        &["ready"],
        " needs --ready, such as --ready http://127.0.0.1:9200/: without a probe, a config with which \
         the engine soon ends counts as good",
    );
    read.rule(
        !policy.pin_config || policy.keep_last_good,
        "pin-config",
        &["keep-last-good"],
        " needs --keep-last-good and --stage: the config is kept and started in the same way",
    );
    check_http(read, http);
    if read.all_read(&["config", "stage"]) {
        for problem in config.problems() {
            read.problem(problem);
        }
    }
}

fn check_http(read: &mut Reader, http: &HttpSettings) {
    if read.all_read(&HTTP_OPTIONS) {
        let by_variables = HTTP_OPTIONS.iter().any(|option| read.is_variable(option));
        for problem in http.validate() {
            read.problem(if by_variables { with_variables(problem) } else { problem.to_owned() });
        }
    }
}

/// Checks that the probe can use a CA and credentials, if they are set.
pub(super) fn check_probe(
    read: &mut Reader,
    probe: Option<&Probe>,
    has_ca: bool,
    has_credentials: bool,
) {
    let (is_https, is_http) = match probe {
        Some(Probe::Http { tls, .. }) => (*tls, true),
        Some(Probe::Tcp { .. }) | None => (false, false),
    };
    let is_safe = probe.is_none_or(Probe::is_loopback) || (is_https && has_ca);
    let others = ["ready", "ready-ca"];
    read.rule(
        !has_ca || is_https,
        "ready-ca",
        &others,
        " needs --ready https://…: nothing else has a certificate",
    );
    read.rule(
        !has_credentials || is_http,
        "ready-auth",
        &others,
        " needs --ready https://… or http://…: nothing else has users",
    );
    read.rule(
        !has_credentials || !is_http || is_safe,
        "ready-auth",
        &others,
        " needs --ready https://… with --ready-ca, or an address on loopback: to another machine, a \
         password goes only where a certificate proves who gets it",
    );
}

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
