//! The server process: starts, becomes ready, ends as a JVM does.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::unistd::{alarm, pause, setsid};
use signal_hook::consts::SIGTERM;

use super::cluster::{Cluster, NodeInfo, now_ms};
use super::config::{Behaviour, Config, Distribution, Transport};
use super::data::{self, Data};
use super::rest::Node;
use super::{EXIT_FAILED, Event, Myself, Refusal, http, print_error, print_line};

/// The ways to end the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// By a signal.
    Signals,
    /// By a signal, or by its launcher over stdin.
    Launcher,
}

/// Runs the server to its end; returns the exit code.
pub(super) fn run(config: Config, control: Control, myself: &Myself<'_>) -> Result<u8, Refusal> {
    let began = Instant::now();
    let (sender, events) = super::signals()
        .map_err(|error| Refusal::failed(format!("cannot handle signals: {error}")))?;
    if control == Control::Launcher {
        super::watch_launcher(sender);
    }
    let crash_code = config.behaviour.exit_code.unwrap_or(EXIT_FAILED);
    if config.behaviour.exit_code.is_some() && config.behaviour.crash_after.is_none() {
        return Ok(crash_code);
    }
    use_temp_dir()?;
    if config.behaviour.keystore {
        create_keystore(&config.directory)?;
    }
    let data = Data::lock(&config.data)?;
    spawn(&config.behaviour, myself)?;
    let node = listen(config, data)?;

    let behaviour = &node.config.behaviour;
    let mut plan = Plan {
        ready_at: Some(Instant::now() + behaviour.start_delay),
        crash_at: behaviour.crash_after.map(|delay| began + delay),
        exit_at: None,
        exit_code: 0,
    };
    loop {
        let now = Instant::now();
        if plan.exit_at.is_some_and(|at| at <= now) {
            print_line(&format!("closed, exit code {}", plan.exit_code));
            return Ok(plan.exit_code);
        }
        if plan.crash_at.is_some_and(|at| at <= now) {
            print_error(&format!("fatal error, exiting with code {crash_code}"));
            return Ok(crash_code);
        }
        if plan.ready_at.is_some_and(|at| at <= now) {
            plan.ready_at = None;
            node.cluster.start().map_err(|error| {
                Refusal::failed(format!("failed to bind transport.port: {error}"))
            })?;
            node.ready.store(true, Ordering::SeqCst);
            print_line(&format!("started, node {}", node.config.node_name));
        }
        let Some(event) = next(&events, plan.next_deadline()) else { continue };
        let code = match event {
            Event::Signal(signal) => super::exit_code_after(signal, behaviour.ignore_term),
            Event::ShutdownMarker => Some(0),
            Event::LauncherGone => Some(EXIT_FAILED),
            // Only a launcher starts a server.
            Event::ServerExited(_) => None,
        };
        if let (Some(code), None) = (code, plan.exit_at) {
            node.ready.store(false, Ordering::SeqCst);
            node.cluster.leave();
            print_line("stopping ...");
            plan.ready_at = None;
            plan.exit_at = Some(Instant::now() + behaviour.stop_delay);
            plan.exit_code = code;
        }
    }
}

/// The next timed action, if no event comes before.
struct Plan {
    ready_at: Option<Instant>,
    crash_at: Option<Instant>,
    exit_at: Option<Instant>,
    exit_code: u8,
}

impl Plan {
    fn next_deadline(&self) -> Option<Instant> {
        [self.ready_at, self.crash_at, self.exit_at].into_iter().flatten().min()
    }
}

fn next(events: &Receiver<Event>, deadline: Option<Instant>) -> Option<Event> {
    let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
    events.recv_timeout(left).ok()
}

fn listen(config: Config, data: Data) -> Result<Arc<Node>, Refusal> {
    let port = config.http_port;
    let listener = TcpListener::bind((config.http_host.as_str(), port))
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = listener
        .map_err(|error| Refusal::failed(format!("failed to bind http.port {port}: {error}")))?;
    let cluster = introduce(&config, &data, &address.to_string())
        .and_then(|me| Cluster::new(&config, data, me))
        .map_err(|error| Refusal::failed(format!("cannot read the data path: {error}")))?;
    let cluster = Arc::new(cluster);
    let node = Arc::new(Node { config, cluster, ready: AtomicBool::new(false) });
    let answering = Arc::clone(&node);
    http::serve(listener, move |request| answering.answer(request));
    print_line(&format!("publish_address {{{address}}}"));
    Ok(node)
}

/// The data of this node for the other nodes.
fn introduce(config: &Config, data: &Data, http: &str) -> std::io::Result<NodeInfo> {
    let version = match config.behaviour.distribution {
        Distribution::OpenSearch => "2.19.3",
        Distribution::Elasticsearch => "8.19.0",
    };
    let transport = match &config.transport {
        Some(transport) => format!("{}:{}", publish_host(transport), transport.port),
        None => "127.0.0.1:9300".to_owned(),
    };
    Ok(NodeInfo {
        // A single node needs no unique id: the name is easier to read.
        id: data.node_id(config.alone.then_some(config.node_name.as_str()))?,
        name: config.node_name.clone(),
        ephemeral_id: data::random_id()?,
        transport,
        http: http.to_owned(),
        roles: config.roles.clone(),
        attributes: config.attributes.clone(),
        version: config.behaviour.version.clone().unwrap_or_else(|| version.to_owned()),
        pid: std::process::id(),
        started_ms: now_ms(),
        data: config.data.display().to_string(),
    })
}

/// The address for the other nodes: if it listens on all addresses, the one of the route to them.
fn publish_host(transport: &Transport) -> String {
    if let Some(host) = &transport.publish_host {
        return host.clone();
    }
    if transport.host != "0.0.0.0" {
        return transport.host.clone();
    }
    let towards = |seed: &String| {
        let host = seed.rsplit_once(':').map_or(seed.as_str(), |(host, _)| host);
        // Nothing is sent: this makes the kernel choose a route.
        let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect((host, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    transport.seeds.iter().find_map(towards).unwrap_or_else(|| "127.0.0.1".to_owned())
}

/// Leaves a file in the temp dir at every start, as the real engines do.
fn use_temp_dir() -> Result<(), Refusal> {
    let Some(directory) = std::env::var_os("ES_TMPDIR") else { return Ok(()) };
    let litter = Path::new(&directory).join(format!("elasticsearch-{}", std::process::id()));
    std::fs::create_dir(&litter).map_err(|error| {
        Refusal::failed(format!("ES_TMPDIR cannot be used: {}: {error}", litter.display()))
    })
}

fn create_keystore(directory: &Path) -> Result<(), Refusal> {
    let keystore = directory.join("elasticsearch.keystore");
    if keystore.exists() {
        return Ok(());
    }
    std::fs::write(&keystore, format!("seed {}\n", std::process::id()))
        .map_err(|error| Refusal::failed(format!("cannot write {}: {error}", keystore.display())))
}

// Processes that an engine leaves behind: orphans, children in their own sessions, a disowned
// helper.
//
// Those that would live for ever are ended by an alarm after [`LIFETIME_SECONDS`], so that an
// aborted test leaves nothing behind for good.

pub(super) const ORPHAN_MAKER: &str = "standin.orphan-maker";
pub(super) const ORPHAN: &str = "standin.orphan";
pub(super) const SETSID_CHILD: &str = "standin.setsid-child";
pub(super) const HELPER: &str = "standin.helper";

const LIFETIME_SECONDS: u32 = 600;

/// Starts what `behaviour` requests, and returns when all of it runs.
pub(super) fn spawn(behaviour: &Behaviour, myself: &Myself<'_>) -> Result<(), Refusal> {
    let make = || {
        if behaviour.orphans > 0 {
            let count = behaviour.orphans.to_string();
            myself.command("standin", ORPHAN_MAKER)?.arg(count).status()?;
        }
        let mut ready = Vec::new();
        for _ in 0..behaviour.setsid_children {
            let mut child =
                myself.command("standin", SETSID_CHILD)?.stdout(Stdio::piped()).spawn()?;
            ready.extend(child.stdout.take());
        }
        // Each writes one byte once it ignores SIGTERM; before that, a signal would still end it.
        ready.iter_mut().try_for_each(|pipe| pipe.read_exact(&mut [0]))
    };
    make().map_err(|error: io::Error| {
        Refusal::failed(format!("cannot start the processes that standin.* asks for: {error}"))
    })
}

/// Starts the helper; no process waits for it.
pub(super) fn start_helper(myself: &Myself<'_>) -> Result<(), Refusal> {
    myself
        .command("performance-analyzer-agent", HELPER)
        .and_then(|mut command| command.stdin(Stdio::null()).spawn())
        .map(drop)
        .map_err(|error| Refusal::failed(format!("cannot start the helper: {error}")))
}

/// The middle process of the double fork: starts the orphans and ends.
pub(super) fn make_orphans(arguments: &[OsString], myself: &Myself<'_>) -> Result<u8, Refusal> {
    let count = arguments.get(1).and_then(|count| count.to_str()?.parse::<u32>().ok());
    let count = count.ok_or_else(|| Refusal::failed("how many orphans?"))?;
    // Each orphan reads until this process has ended, and with it the other end of the pipe.
    let mut pipes = Vec::new();
    for _ in 0..count {
        let child = myself
            .command("standin", ORPHAN)
            .and_then(|mut command| command.stdin(Stdio::piped()).spawn());
        pipes.push(child.map_err(|error| Refusal::failed(format!("no orphan: {error}")))?.stdin);
    }
    Ok(0)
}

/// Ends when its parent has ended.
pub(super) fn orphan() -> Result<u8, Refusal> {
    // Nothing is ever written: the read returns at the end of file, or with an error, which also
    // ends this process.
    let _ = io::stdin().read(&mut [0]);
    Ok(0)
}

/// Runs in its own session and ignores TERM.
pub(super) fn setsid_child() -> Result<u8, Refusal> {
    alarm::set(LIFETIME_SECONDS);
    let ready = || {
        setsid()?;
        signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false)))?;
        io::stdout().write_all(b"!")?;
        io::stdout().flush()
    };
    ready().map_err(|error| Refusal::failed(format!("cannot leave the session: {error}")))?;
    loop {
        pause();
    }
}

/// Runs until it is ended.
pub(super) fn helper() -> Result<u8, Refusal> {
    alarm::set(LIFETIME_SECONDS);
    loop {
        pause();
    }
}
