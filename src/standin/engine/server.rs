//! The server process: starts, becomes ready, ends as a JVM does.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::cluster::{Cluster, NodeInfo, now_ms};
use super::config::{Config, Distribution, Transport};
use super::data::{self, Data};
use super::event::{self, Event};
use super::rest::Node;
use super::{EXIT_FAILED, Myself, Refusal, http, offspring, print_error, print_line};

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
    let (sender, events) = event::signals()
        .map_err(|error| Refusal::failed(format!("cannot handle signals: {error}")))?;
    if control == Control::Launcher {
        event::watch_launcher(sender);
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
    offspring::spawn(&config.behaviour, myself)?;
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
            Event::Signal(signal) => event::exit_code_after(signal, behaviour.ignore_term),
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
