//! Settings from command lines and environments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Command};
use proptest::prelude::*;
use tracing::level_filters::LevelFilter;

use super::values::read_pod;
use super::*;
use crate::lifecycle::OnExit;
use stayput_api::Pod;
use stayput_http::jwt::Scopes;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(name, value)| (name.into(), value.into())))
}

fn variables() -> Vec<String> {
    let command = RunArgs::augment_args(Command::new("run"));
    command.get_arguments().filter_map(clap::Arg::get_long).map(args::variable).collect()
}

fn read_with(line: &str, variables: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
    let command = RunArgs::augment_args(Command::new("run"));
    let words = std::iter::once("run").chain(line.split_whitespace());
    let matches = command.try_get_matches_from(words).expect("the line is for clap to take");
    read(&matches, &environment(variables), false)
}

fn good(line: &str) -> Settings {
    read_with(line, &[]).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// Asserts that exactly these problems are reported, each by a part of its message.
#[track_caller]
fn assert_problems(result: Result<Settings, Vec<String>>, parts: &[&str]) {
    let problems = result.expect_err("there are problems");
    assert_eq!(problems.len(), parts.len(), "{problems:#?}");
    for (problem, part) in problems.iter().zip(parts) {
        assert!(problem.contains(part), "{problem:?} does not contain {part:?}");
    }
}

#[test]
fn bare_run_is_a_silent_drop_in() {
    let settings = good("-- sleep 1 --x");
    assert_eq!(settings.command, ["sleep", "1", "--x"].map(OsString::from));
    assert!(settings.http.listen.is_none() && settings.http.socket.is_none());
    assert_eq!(settings.config.dirs, []);
    assert_eq!(settings.state_dir, None);
    assert_eq!(
        settings.policy,
        Policy {
            api: false,
            pod: None,
            stop_signal: 15,
            grace: 120_000,
            tree_grace: 2_000,
            drain: 0,
            termination_grace: None,
            thread_dump: true,
            on_exit: OnExit::Exit,
            success_exit: vec![],
            probe: false,
            staged: false,
            keep_last_good: false,
            pin_config: false,
            seed: 0,
        }
    );
    assert_eq!(settings.log.level, LevelFilter::ERROR);
    assert_eq!(good("--grace 5s -- true").log.level, LevelFilter::INFO);
}

#[test]
fn every_option_is_read() {
    let settings = good(
        "--listen :9199 --socket /state/s.sock --tls-cert /tls/crt --tls-key /tls/key \
         --client-ca /tls/ca --allow-client spiffe://x/a=b=read --jwt-key /jwt/key \
         --jwt-public-key /jwt/pem --jwks /jwt/jwks --jwt-issuer https://issuer \
         --jwt-audience stayput --allow-subject system:serviceaccount:search:stayput=es:control \
         --allow-uid 1000 --allow-uid 1001 --open-metrics --config yml=/mnt/yml/ \
         --config jvm=/mnt/jvm --live **/secure* --stage /mnt/yml=/conf \
         --stage /mnt/jvm=/jvm --keep-last-good --pin-config --state-dir /state --tmp-dir /tmp --ready https://localhost:9200/_x --stop-signal sigint \
         --grace 3m --tree-grace 500ms --drain 10s --termination-grace 50s --thread-dump false \
         --on-exit hold --success-exit 143 --success-exit 130 --log-format text \
         --log-level debug -- /es",
    );
    assert_eq!(settings.http.listen, "[::]:9199".parse().ok());
    assert_eq!(settings.http.allow_client, [("spiffe://x/a=b".into(), Scopes::READ)]);
    assert_eq!(
        settings.http.allow_subject,
        [("system:serviceaccount:search:stayput".into(), Scopes::CONTROL)]
    );
    assert_eq!(settings.http.allow_uid, [1000, 1001]);
    assert!(settings.http.open_metrics && !settings.http.insecure_no_auth);
    let config = settings.config;
    assert_eq!(config.dirs[0].name.as_deref(), Some("yml"));
    assert_eq!(config.stage[0].source, config.dirs[0].path);
    assert_eq!(config.keep_last_good, Some(PathBuf::from("/state/configs")));
    assert_eq!(config.live[0].as_str(), "**/secure*");
    assert_eq!(settings.policy.stop_signal, 2);
    assert_eq!(settings.policy.termination_grace, Some(50_000));
    assert_eq!(settings.policy.on_exit, OnExit::Hold);
    assert_eq!(settings.policy.success_exit, [143, 130]);
    assert!(!settings.policy.thread_dump);
    assert!(settings.policy.keep_last_good && settings.policy.pin_config);
    assert!(matches!(settings.ready, Some(Probe::Http { .. })));
    assert_eq!(settings.log, LogSettings { format: LogFormat::Text, level: LevelFilter::DEBUG });
}

#[test]
fn the_environment_is_read_and_the_command_line_wins() {
    let variables = [
        ("STAYPUT_GRACE", "7s"),
        ("STAYPUT_DRAIN", "7s"),
        ("STAYPUT_CONFIG", "a=/a, b=/b\nc=/c\n"),
        ("STAYPUT_SUCCESS_EXIT", "1,2"),
        ("STAYPUT_OPEN_METRICS", "true"),
    ];
    let settings = read_with("--drain 1s --success-exit 3 --open-metrics=false -- x", &variables)
        .unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!(settings.policy.grace, 7_000);
    assert_eq!(settings.policy.drain, 1_000);
    assert_eq!(settings.policy.success_exit, [3]);
    assert!(!settings.http.open_metrics);
    let dirs = settings.config.dirs;
    assert_eq!(dirs.iter().filter_map(|dir| dir.name.as_deref()).collect::<String>(), "abc");
    assert_eq!(
        settings.log.level,
        LevelFilter::INFO,
        "with settings from the environment it is no bare run"
    );
}

#[test]
fn a_mistyped_variable_is_said_also_by_a_bare_run() {
    let settings = read_with("-- x", &[("STAYPUT_GRCE", "3s")]).unwrap();
    assert_eq!(settings.log.level, LevelFilter::WARN);
    let [warning] = &settings.warnings[..] else { panic!("{:?}", settings.warnings) };
    assert!(warning.starts_with("STAYPUT_GRCE is no setting"), "{warning}");
}

/// As an image has it.
#[test]
fn who_set_variables_is_told_variables() {
    let variables = [("STAYPUT_LISTEN", ":1"), ("STAYPUT_STATE_DIR", "/s")];
    let problems = read_with("-- x", &variables).unwrap_err();
    let [tls, auth] = &problems[..] else { panic!("{problems:?}") };
    assert!(
        tls.starts_with("STAYPUT_LISTEN needs STAYPUT_TLS_CERT and STAYPUT_TLS_KEY: "),
        "{tls}"
    );
    assert!(tls.ends_with("there is STAYPUT_INSECURE_NO_AUTH)"), "{tls}");
    assert!(
        auth.contains("give STAYPUT_JWT_KEY, STAYPUT_JWT_PUBLIC_KEY, STAYPUT_JWKS or"),
        "{auth}"
    );
}

#[test]
fn every_option_has_its_variable() {
    for variable in variables() {
        let problems = read_with("-- x", &[(&variable, "")]).expect_err(&variable);
        assert_eq!(
            problems,
            [format!("{variable} is set, but empty: give it a value or unset it")]
        );
    }
}

#[test]
fn all_problems_are_told_at_once_by_the_name_they_were_given_under() {
    assert_problems(
        read_with(
            "--listen nine --grace -12 --allow-client joe --allow-client joe=write --stop-signal 9 \
             --ready redis://x --tmp-dir= --thread-dump maybe --success-exit 256",
            &[("STAYPUT_ON_EXIT", "panic"), ("STAYPUT_POD_UID", "$(POD_UID)")],
        ),
        &[
            "STAYPUT_POD_UID is \"$(POD_UID)\"",
            "--listen: \"nine\"",
            "--allow-client: \"joe\" has no scope",
            "--allow-client: \"write\" is not a scope",
            "--ready: \"redis://x\"",
            "--stop-signal: \"9\" gives the engine no chance",
            "--grace: \"-12\" is not a duration",
            "--thread-dump: \"maybe\"",
            "STAYPUT_ON_EXIT: \"panic\"",
            "--success-exit: \"256\"",
            "--tmp-dir: the value is empty",
            "the engine's command is missing",
        ],
    );
}

#[test] // proves HOST-1
fn a_stop_signal_must_end_a_process() {
    for signal in ["CHLD", "CONT", "URG", "WINCH", "TSTP", "SIGTTIN", "22"] {
        let line = format!("--stop-signal {signal} -- sleep 1");
        assert_problems(read_with(&line, &[]), &["ends no process: use TERM, INT or QUIT"]);
    }
    for signal in ["TERM", "USR1", "HUP", "40"] {
        good(&format!("--stop-signal {signal} -- sleep 1"));
    }
}

#[test]
fn a_drain_that_leaves_the_engine_no_time_is_told() {
    let line = "--drain 10s --termination-grace 11s -- sleep 1";
    let [warning] = &good(line).warnings[..] else { panic!("one warning") };
    assert!(warning.contains("leaves the engine 1000 ms after --drain"), "{warning}");
    assert!(good("--drain 10s --termination-grace 15s -- sleep 1").warnings.is_empty());
}

#[test]
fn a_listener_needs_a_place_for_its_intent() {
    assert_problems(
        read_with("--listen :1 --socket /s -- x", &[]),
        &[
            "--listen needs --state-dir",
            "--listen needs --tls-cert",
            "--listen needs authentication, so that the manager knows who calls",
        ],
    );
}

#[test]
fn holding_needs_somebody_who_can_start_again() {
    assert_problems(read_with("--on-exit hold -- x", &[]), &["--on-exit: hold needs --socket"]);
}

#[test]
fn rules_between_config_options() {
    assert_problems(
        read_with("--config /a --config n=/b --config n=/b -- x", &[]),
        &["--config /a: with several directories each needs a name", "the name n is given twice"],
    );
    assert_problems(
        read_with("--live *.yml --stage /a=/a/b --keep-last-good -- x", &[]),
        &[
            "--live needs --config",
            "--keep-last-good needs --state-dir",
            "--keep-last-good needs --ready",
            "/a is not a --config directory",
            "must be staged",
        ],
    );
    assert_problems(
        read_with("--config /a --keep-last-good --state-dir /s -- x", &[]),
        &[
            "--state-dir needs --socket or --listen",
            "--keep-last-good needs --ready",
            "--keep-last-good: every --config directory must be staged with --stage",
        ],
    );
    assert_problems(
        read_with("--config /a --pin-config -- x", &[]),
        &["--pin-config needs --keep-last-good and --stage"],
    );
    assert_problems(
        read_with("--config .n=/a --stage /a --live [ -- x", &[]),
        &["no name for a directory", "\"[\" is no pattern", "has no target"],
    );
}

#[test] // proves ACCESS-22
fn one_mistake_gets_one_message() {
    for (line, part) in [
        (
            "--config .n=/config --stage /config=/c --live * --keep-last-good --ready tcp://h:1 \
             --state-dir /s --socket /s/s -- x",
            "no name for a directory",
        ),
        ("--listen nine --tls-cert /c --tls-key /k --jwt-key /j --state-dir /s -- x", "\"nine\""),
        (
            "--listen :1 --tls-cert /c --client-ca /a --allow-client a=read --state-dir /s -- x",
            "together",
        ),
        (
            "--listen :1 --client-ca /a --allow-client a=read --state-dir /s -- x",
            "needs --tls-cert",
        ),
        (
            "--listen :1 --tls-cert /c --tls-key /k --client-ca= --allow-client a=read --state-dir /s -- x",
            "--client-ca: the value is empty",
        ),
        (
            "--socket /s/s --listen 127.0.0.1:1 --insecure-no-auth -- x",
            "--listen needs --state-dir",
        ),
        (
            "--socket /s/s --state-dir= --on-exit hold --keep-last-good --ready tcp://h:1 \
             --config /c --stage /c=/d -- x",
            "--state-dir: the value is empty",
        ),
        (
            "--socket /s/s --state-dir /s --keep-last-good --ready h --config /c --stage /c=/d -- x",
            "no URL of a probe",
        ),
        ("--pin-config --keep-last-good=maybe -- x", "\"maybe\""),
        ("--drain soon --termination-grace 0s -- x", "\"soon\""),
    ] {
        assert_problems(read_with(line, &[]), &[part]);
    }
}

#[test] // proves ACCESS-22
fn relative_paths_are_those_of_the_working_directory() {
    let here = std::env::current_dir().unwrap();
    let settings = good(
        "--config config --stage ./config/=../engine --socket s.sock --state-dir state/ \
         --tmp-dir . --environment env --jwt-key keys/../key --jwt-audience a --keep-last-good --ready tcp://h:1 -- x",
    );
    let dirs: Vec<_> = settings.config.dirs.iter().map(|dir| dir.path.clone()).collect();
    assert_eq!(dirs, [here.join("config")]);
    assert_eq!(settings.config.stage[0].target, here.parent().unwrap().join("engine"));
    assert_eq!(settings.http.socket, Some(here.join("s.sock")));
    assert_eq!(settings.state_dir, Some(here.join("state")));
    assert_eq!(settings.tmp_dir, Some(here.clone()));
    assert_eq!(settings.environment, Some(here.join("env")));
    // What a link may stand before is left to the kernel.
    assert_eq!(settings.http.jwt_key, Some(here.join("keys/../key")));
    assert_problems(
        read_with("--config a= --stage a= -- x", &[]),
        &["no directory", "path is empty"],
    );
}

#[test]
fn probes() {
    let ready = |url: &str| good(&format!("--ready {url} -- x")).ready;
    let tcp = |address: &str| Some(Probe::Tcp { address: address.to_owned() });
    assert_eq!(ready("tcp://[::1]:9300"), tcp("[::1]:9300"));
    assert_eq!(ready("tcp://localhost:9300"), tcp("localhost:9300"));
    let http = |address: &str, path: &str, tls| {
        Some(Probe::Http {
            address: address.to_owned(),
            path: path.to_owned(),
            tls,
            ca: None,
            auth: None,
        })
    };
    assert_eq!(ready("http://[::1]:9200/a?b=c"), http("[::1]:9200", "/a?b=c", false));
    assert_eq!(ready("https://localhost"), http("localhost:443", "/", true));
    let no_port = ["http://127.0.0.1:92000/", "https://[::1]:x/"];
    let others = ["tcp://host", "tcp://host:1/x", "tcp://host:0", "host:9200", "http://u:p@h:1/"];
    for bad in no_port.into_iter().chain(others) {
        let problems = read_with(&format!("--ready {bad} -- x"), &[]).expect_err(bad);
        assert!(problems[0].starts_with("--ready: "), "{problems:?}");
    }
}

#[test] // proves STOP-36
fn a_probe_sends_a_password_only_where_it_is_safe() {
    let settings =
        good("--ready https://127.0.0.1:9200/ --ready-ca ca.crt --ready-auth /auth -- x");
    let here = std::env::current_dir().unwrap();
    match settings.ready {
        Some(Probe::Http { ca, auth, .. }) => {
            assert_eq!((ca, auth), (Some(here.join("ca.crt")), Some("/auth".into())));
        }
        other => panic!("{other:?}"),
    }
    for ready in
        ["http://localhost:1", "https://[::1]", "https://127.0.0.2:1", "https://h:1 --ready-ca /c"]
    {
        good(&format!("--ready {ready} --ready-auth /a -- x"));
    }
    for (line, part) in [
        ("--ready-auth /a", "--ready-auth needs --ready https"),
        ("--ready-ca /c", "--ready-ca needs --ready https"),
        ("--ready tcp://h:1 --ready-auth /a", "nothing else has users"),
        ("--ready http://127.0.0.1:1 --ready-ca /c", "nothing else has a certificate"),
        ("--ready https://h:1 --ready-auth /a", "or an address on loopback"),
        ("--ready http://10.0.0.1:1 --ready-auth /a", "or an address on loopback"),
        ("--ready ftp://h:1 --ready-auth /a --ready-ca /c", "no URL of a probe"),
    ] {
        assert_problems(read_with(&format!("{line} -- x"), &[]), &[part]);
    }
}

#[test]
fn unknown_variables_are_warned_about() {
    let settings = read_with(
        "-- x",
        &[
            ("STAYPUT_GRACEE", "1s"),
            ("STAYPUT_RUN", "other"),
            ("STAYPUT_TOKEN_FILE", "/t"),
            ("STAYPUT_RECONCILER_SERVICE_HOST", "10.0.0.1"),
            ("STAYPUT_RECONCILER_PORT_443_TCP_ADDR", "10.0.0.1"),
            ("STAYPUT_PORT", "tcp://10.0.0.1:443"),
            ("OTHER", "x"),
        ],
    )
    .expect("warnings are no problems");
    assert_eq!(settings.warnings.len(), 1, "{:?}", settings.warnings);
    assert!(settings.warnings[0].contains("STAYPUT_GRACEE"));
}

#[test]
fn a_pod_is_taken_from_the_downward_api() {
    let pod = read_pod(&environment(&[
        ("STAYPUT_POD_NAMESPACE", "search"),
        ("STAYPUT_POD_NAME", "logs-2.x"),
        ("STAYPUT_POD_UID", "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a"),
    ]))
    .expect("a pod");
    assert_eq!(pod.name.as_deref(), Some("logs-2.x"));
    assert_eq!(read_pod(&environment(&[])), Ok(Pod::default()));
    let static_pod = [("STAYPUT_POD_UID", "0b4a1f6e8e5c4c1e9a552f1f0c9d1b7a")];
    assert!(read_pod(&environment(&static_pod)).is_ok());
}

/// Bytes as the kernel would pass them, mostly close to valid values.
fn value() -> impl Strategy<Value = OsString> {
    use std::os::unix::ffi::OsStringExt;
    prop_oneof![
        proptest::collection::vec(1u8..=255, 0..300).prop_map(OsString::from_vec),
        "[a-z0-9.-]{0,70}".prop_map(OsString::from),
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".prop_map(OsString::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_pod_identity_is_taken_or_named(values in [value(), value(), value()]) {
        let names = ["STAYPUT_POD_NAMESPACE", "STAYPUT_POD_NAME", "STAYPUT_POD_UID"];
        let environment = Environment::new(names.map(OsString::from).into_iter().zip(values.clone()));
        match read_pod(&environment) {
            Ok(pod) => {
                let taken = [pod.namespace, pod.name, pod.uid].map(Option::unwrap_or_default);
                prop_assert_eq!(taken.map(OsString::from), values);
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty() && problems.len() <= 3);
                for problem in problems {
                    prop_assert!(names.iter().any(|name| problem.starts_with(name)));
                    prop_assert!(problem.len() < 2000 && !problem.contains('\n'));
                }
            }
        }
    }

    #[test]
    fn any_environment_is_taken_or_named(
        position in 0usize..1000,
        value in value().prop_filter("empty is tested by itself", |value| !value.is_empty()),
    ) {
        let variables = variables();
        let variable = &variables[position % variables.len()];
        let command = RunArgs::augment_args(Command::new("run"));
        let matches = command.try_get_matches_from(["run", "--", "x"]).expect("a command line");
        let environment = Environment::new([(OsString::from(variable), value)]);
        if let Err(problems) = read(&matches, &environment, true) {
            for problem in problems {
                // An option without which it cannot be, or that one's variable.
                let names = [variable.as_str(), "STAYPUT_", "--"];
                prop_assert!(names.iter().any(|name| problem.contains(name)), "{problem}");
            }
        }
    }
}

#[test]
fn an_empty_item_of_a_list_is_told_as_one() {
    for value in ["1,,2", "1,", ",1"] {
        let read = read_with("-- true", &[("STAYPUT_SUCCESS_EXIT", value)]);
        assert_problems(read, &["one item of the list is empty"]);
    }
    for value in ["", "\n", " ", ","] {
        let read = read_with("-- true", &[("STAYPUT_SUCCESS_EXIT", value)]);
        assert_problems(read, &["is set, but empty"]);
    }
}

#[test]
fn signals_that_the_c_library_keeps_are_refused() {
    for number in ["32", "33"] {
        let read = read_with(&format!("--stop-signal {number} -- true"), &[]);
        assert_problems(read, &["the C library keeps"]);
    }
    assert_eq!(good("--stop-signal 34 -- true").policy.stop_signal, 34);
    assert_eq!(good("--stop-signal 31 -- true").policy.stop_signal, 31);
}
