//! A real Docker container: the images that users get.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::api::Api;
use crate::support::container::{
    Container, base_image, bind, docker, elasticsearch_image, manager_image, opensearch_image,
};
use crate::support::engine::{Kind, home, work_directory};
use crate::support::manager::NEVER_READY;
use crate::support::skip;
use crate::support::wait::eventually;

/// The restrictions of the profile `restricted` of PodSecurity, and more.
const RESTRICTED: [&str; 9] = [
    "--read-only",
    "--user",
    "1000:1000",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--network",
    "none",
];
const SOCKET: [&str; 2] = ["--socket", "/state/s.sock"];

#[test] // proves HOST-8
fn from_scratch() {
    let image = match manager_image() {
        Ok(image) => image,
        Err(why) => return skip("docker::from_scratch", &why),
    };
    let work = work_directory(&[]);
    let state = bind(&work.path().join("state"), "/state");
    let run = ["--volume", &state, image, "run", "--state-dir", "/state"];
    let engine = ["--on-exit", "hold", "--", "/stayput", "status", "--watch"];
    let line = [&RESTRICTED[..], &run, &NEVER_READY, &SOCKET, &engine, &SOCKET];
    let container = Container::run(&line.concat());
    let api = Api { socket: work.path().join("state/s.sock") };
    eventually("the manager answers", || api.is_up().then_some(()));
    assert_eq!(api.until_state("starting")["manager"]["pid"], 1);

    // A process of docker exec stays when the engine ends.
    let visit = ["exec", "--detach", &container.inspect("{{.Id}}"), "/stayput", "status"];
    docker(&[&visit[..], &SOCKET, &["--watch", "--json"]].concat());
    eventually("the visitor", || container.commands().contains("--json").then_some(()));
    let json = |verb: &'static str| [&["/stayput", verb, "--json"], &SOCKET[..]].concat();
    let status = container.status(&json("stop"));
    assert_eq!(
        (&status["state"], &status["last_exit"]["reason"]),
        (&json!("stopped"), &json!("stopped"))
    );
    let commands = container.commands();
    // A title, the manager, and the process of docker exec.
    assert!(commands.contains("--json") && commands.lines().count() == 3, "{commands}");

    // SIGTERM while stopped: no failure. The next container keeps it stopped.
    container.act(&["stop", "--time", "20"]);
    assert_eq!(container.inspect("{{.State.ExitCode}}"), "0");
    container.act(&["start"]);
    eventually("the manager answers", || api.is_up().then_some(()));
    let status = api.status_when("what the journal says", |status| {
        status["reason"]["code"] == "stopped_by_request"
    });
    assert_eq!((&status["starts"], &status["desired"]), (&json!(0), &json!("stopped")));

    // SIGTERM while it runs: the engine's exit code.
    api.post("/es/start", &json!({})).expect(202);
    container.act(&["stop", "--time", "20"]);
    assert_eq!(container.inspect("{{.State.ExitCode}}"), "143");
}

#[test] // proves HOST-8
fn installed_into_another_container() {
    let (image, base) = match manager_image().and_then(|image| Ok((image, base_image()?))) {
        Ok(images) => images,
        Err(why) => return skip("docker::installed_into_another_container", &why),
    };
    let work = work_directory(&["bin"]);
    let bin = bind(&work.path().join("bin"), "/shared");
    let install = ["run", "--rm", "--volume", &bin];
    let printed = docker(&[&install[..], &RESTRICTED, &[image, "install", "/shared"]].concat());
    assert_eq!(printed, "/shared/stayput");

    let run = ["--volume", &bin, base, "/shared/stayput", "run", "--", "sh", "-c", "exit 3"];
    let container = Container::run(&[&RESTRICTED[..], &run].concat());
    assert_eq!(container.wait(), "3");
}

#[test] // proves STOP-38
fn killed_for_memory() {
    let (image, base) = match manager_image().and_then(|image| Ok((image, base_image()?))) {
        Ok(images) => images,
        Err(why) => return skip("docker::killed_for_memory", &why),
    };
    let work = work_directory(&["bin"]);
    let bin = bind(&work.path().join("bin"), "/shared");
    let install = ["run", "--rm", "--volume", &bin];
    docker(&[&install[..], &RESTRICTED, &[image, "install", "/shared"]].concat());
    let state = bind(&work.path().join("state"), "/state");
    let volumes = ["--memory", "64m", "--volume", &state, "--volume", &bin, base];
    let manager = ["/shared/stayput", "run", "--state-dir", "/state", "--on-exit", "hold"];
    // `tail` keeps its input until a line ends; its shell reports its death, as a launcher does
    // that of its server.
    let engine = ["--", "sh", "-c", "tail /dev/zero; exit $?"];
    let container =
        Container::run(&[&RESTRICTED[..], &volumes, &manager, &SOCKET, &engine].concat());
    let api = Api { socket: work.path().join("state/s.sock") };
    eventually("the manager answers", || api.is_up().then_some(()));
    let status = api.until_state("failed");
    let exit = &status["last_exit"];
    assert_eq!((&exit["code"], &exit["reason"]), (&json!(137), &json!("oom")), "{exit:#}");
    let message = status["reason"]["message"].as_str().expect("a sentence");
    assert!(message.contains("out of memory"), "{message}");
    assert_eq!(container.inspect("{{.State.Running}} {{.RestartCount}}"), "true 0");
    assert_eq!(api.get("/livez").status, 200);
}

/// The image for users with a certificate, a key and a probe, as its first lines say.
fn run_engine(image: &str, work: &Path, more: &[&str]) -> Container {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(work.join("tls.key"), made.signing_key.serialize_pem()).expect("a key");
    fs::write(work.join("tls.crt"), made.cert.pem()).expect("a certificate");
    fs::write(work.join("jwt.key"), [b'k'; 32]).expect("a key");
    let volumes = [
        bind(work, "/secret:ro"),
        bind(&work.join("state"), "/var/lib/stayput"),
        bind(&work.join("node"), "/node"),
    ];
    let volumes = volumes.iter().flat_map(|volume| ["--volume", volume]);
    let variables = [
        "STAYPUT_TLS_CERT=/secret/tls.crt",
        "STAYPUT_TLS_KEY=/secret/tls.key",
        "STAYPUT_JWT_KEY=/secret/jwt.key",
        "STAYPUT_JWT_AUDIENCE=test",
        "STAYPUT_READY=http://127.0.0.1:9200/_cluster/health",
        "STAYPUT_ON_EXIT=hold",
    ];
    let variables = variables.iter().flat_map(|variable| ["--env", *variable]);
    let mut args = vec!["--network", "none", "--hostname", "localhost"];
    args.extend(volumes.chain(variables).chain(more.iter().copied()));
    args.push(image);
    Container::run(&args)
}

#[test] // proves STOP-25, JOURNAL-2
fn a_real_opensearch_behind_the_image() {
    let engine = home(Kind::OpenSearch).ok_or_else(|| "OpenSearch is not installed".to_owned());
    let image = match engine.and_then(|engine| opensearch_image(&engine)) {
        Ok(image) => image,
        Err(why) => return skip("docker::a_real_opensearch_behind_the_image", &why),
    };
    let work = work_directory(&["node"]);
    let container = run_engine(image, work.path(), &["--env", "HEAP=128m"]);
    let api = Api { socket: work.path().join("state/stayput.sock") };
    let born = container.inspect("{{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.RestartCount}}");
    eventually("the manager answers", || api.is_up().then_some(()));
    api.until_ready();
    let status = api.status_when("the JVM is read", |status| !status["archive"].is_null());
    let archive = json!({ "path": "/usr/share/opensearch/warm.jsa", "used": true });
    assert_eq!(status["archive"], archive, "made by the build of the image");
    let helper = status["run"]["id"].clone();

    let client = |line: &[&'static str]| {
        let socket = ["--socket", "/var/lib/stayput/stayput.sock"];
        container.status(&[&["stayput"], line, &["--json"], &socket].concat())
    };
    let status = client(&["stop"]);
    let exit = &status["last_exit"];
    assert_eq!((&exit["reason"], &exit["code"]), (&json!("stopped"), &json!(143)), "{exit:#}");
    let straggler = exit["stragglers"][0]["command"].as_str().expect("the entrypoint's helper");
    // The kernel's name of a process that does not let itself be read in time.
    assert!(straggler.contains("stayput-test-helper") || straggler == "[sleep]", "{straggler}");
    assert!(!container.commands().contains("java"));
    let status = client(&["start"]);
    assert_ne!(status["run"]["id"], helper);
    api.until_ready();
    client(&["restart"]);
    api.until_ready();
    let now = container.inspect("{{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.RestartCount}}");
    assert_eq!(now, born, "the container is the same and never ended");

    // The end of the container does not end the stop.
    client(&["stop"]);
    container.act(&["kill", "--signal", "KILL"]);
    container.wait();
    container.act(&["start"]);
    eventually("the manager answers", || api.is_up().then_some(()));
    let status = api.status_when("what the journal says", |status| {
        status["reason"]["code"] == "stopped_by_request"
    });
    assert_eq!((&status["starts"], &status["desired"]), (&json!(0), &json!("stopped")));
    api.start(&json!({}));
}

#[test] // proves JOURNAL-1
fn a_real_elasticsearch_behind_the_image() {
    let engine =
        home(Kind::Elasticsearch).ok_or_else(|| "Elasticsearch is not installed".to_owned());
    let parts = engine.and_then(|engine| Ok((bind(&engine, "/engine:ro"), elasticsearch_image()?)));
    let (engine, image) = match parts {
        Ok(parts) => parts,
        Err(why) => return skip("docker::a_real_elasticsearch_behind_the_image", &why),
    };
    let work = work_directory(&["node"]);
    let container = run_engine(image, work.path(), &["--volume", &engine]);
    let api = Api { socket: work.path().join("state/stayput.sock") };
    let born = container.inspect("{{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.RestartCount}}");
    eventually("the manager answers", || api.is_up().then_some(()));
    let status = api.until_ready();
    assert_eq!(status["manager"]["pid"], 1, "in the place of tini");
    let first = status["run"]["id"].clone();

    let client = |verb: &'static str| container.status(&["stayput", verb, "--json"]);
    let exit = client("stop")["last_exit"].clone();
    assert_eq!((&exit["reason"], &exit["code"]), (&json!("stopped"), &json!(143)), "{exit:#}");
    assert!(!container.commands().contains("java"));
    assert_ne!(client("start")["run"]["id"], first);
    api.until_ready();
    let now = container.inspect("{{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.RestartCount}}");
    assert_eq!(now, born, "the container is the same and never ended");
}
