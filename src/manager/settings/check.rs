//! From written options to checked settings: reads every value, then checks rules between options.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Display;

use nix::sys::signal::Signal;
use tracing::level_filters::LevelFilter;

use super::args::{self, Written, variable};
use super::{Environment, LogSettings, Settings, pod, values};
use crate::config_watch::ConfigSettings;
use crate::http::HttpSettings;
use crate::lifecycle::{Millis, OnExit, Policy};
use stayput_api::Span;
use stayput_net::telemetry::LogFormat;

pub(super) fn check(
    written: Written,
    environment: &Environment,
    on_terminal: bool,
) -> Result<Settings, Vec<String>> {
    let Written { args, from_environment, problems, bare } = written;
    let mut read = Reader { from_environment, problems };

    let identity = pod::read(environment).unwrap_or_else(|problems| {
        read.problems.extend(problems);
        stayput_api::Pod::default()
    });
    let http = HttpSettings {
        listen: read.one("listen", args.listen, crate::http::parse_listen),
        socket: read.one("socket", args.socket, values::absolute),
        tls_cert: read.one("tls-cert", args.tls_cert, values::absolute),
        tls_key: read.one("tls-key", args.tls_key, values::absolute),
        client_ca: read.one("client-ca", args.client_ca, values::absolute),
        allow_client: read.list("allow-client", args.allow_client, values::grant),
        jwt_key: read.one("jwt-key", args.jwt_key, values::absolute),
        jwt_public_key: read.one("jwt-public-key", args.jwt_public_key, values::absolute),
        jwks: read.one("jwks", args.jwks, values::absolute),
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
    let state_dir = read.one("state-dir", args.state_dir, values::absolute);

    let ready = read.one("ready", args.ready, values::probe);
    let config = ConfigSettings {
        dirs,
        live,
        stage,
        // Without a state directory the settings are refused below.
        keep_last_good: keep_last_good
            .then(|| state_dir.clone().unwrap_or_default().join(LAST_GOOD)),
        ..ConfigSettings::default()
    };
    let policy = Policy {
        api,
        journal: state_dir.is_some(),
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
        seed: 0,
    };
    let tmp_dir = read.one("tmp-dir", args.tmp_dir, values::absolute);

    // Log collectors parse the engine's JSON lines from a container, so the manager's log has that
    // form; on a terminal it is text. Without options the manager replaces an init, which logs
    // nothing.
    let format = if on_terminal { LogFormat::Text } else { LogFormat::Ecs };
    let level = if bare { LevelFilter::ERROR } else { LevelFilter::INFO };
    let log = LogSettings {
        format: read.one("log-format", args.log_format, str::parse::<LogFormat>).unwrap_or(format),
        level: read.one("log-level", args.log_level, values::log_level).unwrap_or(level),
    };

    if args.command.is_empty() {
        read.problem("the engine's command is missing: write it after --, as in -- COMMAND ARG…");
    }
    for (option, given) in [("listen", http.listen.is_some()), ("socket", http.socket.is_some())] {
        if given && state_dir.is_none() {
            let name = read.name(option);
            read.problem(format!(
                "{name} needs --state-dir: a stop must survive a restart of the container"
            ));
        }
    }
    if policy.on_exit == OnExit::Hold && !api {
        let name = read.name("on-exit");
        read.problem(format!(
            "{name}: hold needs --socket or --listen: without an API no start is possible"
        ));
    }
    if state_dir.is_some() && !api {
        let name = read.name("state-dir");
        read.problem(format!(
            "{name} needs --socket or --listen: without an API there is nothing to remember"
        ));
    }
    if policy.termination_grace.is_some_and(|bound| bound <= policy.drain) {
        let name = read.name("termination-grace");
        read.problem(format!("{name} must be longer than --drain, which it includes"));
    }
    if config.dirs.is_empty() && !config.live.is_empty() {
        let name = read.name("live");
        read.problem(format!("{name} needs --config: its patterns are for files in there"));
    }
    if keep_last_good && state_dir.is_none() {
        let name = read.name("keep-last-good");
        read.problem(format!("{name} needs --state-dir: the copy is kept in there"));
    }
    read.problems.extend(http.validate().into_iter().map(str::to_owned));
    read.problems.extend(config.problems());

    if !read.problems.is_empty() {
        return Err(read.problems);
    }
    let command = args.command;
    let options = args::variables();
    let is_option =
        |name: &str| options.iter().any(|own| own == name) || pod::VARIABLES.contains(&name);
    let warnings = environment
        .unknown(is_option)
        .map(|name| format!("{name} is no setting of stayput and is ignored: is it a typo?"))
        .collect();
    Ok(Settings { command, http, config, policy, ready, state_dir, tmp_dir, log, warnings })
}

/// Directory of the last good config, inside the state directory.
const LAST_GOOD: &str = "last-good";

/// Reads values and collects what is wrong with them.
struct Reader {
    from_environment: BTreeSet<String>,
    problems: Vec<String>,
}

impl Reader {
    fn problem(&mut self, message: impl Into<String>) {
        self.problems.push(message.into());
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
