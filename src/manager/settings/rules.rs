//! Rules between options.

use super::Settings;
use super::args::variable;
use super::check::Reader;
use crate::http::HttpSettings;
use crate::lifecycle::OnExit;
use crate::supervisor::Probe;

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

pub(super) fn check(read: &mut Reader, settings: &Settings) {
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
