//! The server process: start, be ready, end as a JVM ends.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::config::Config;
use super::data::Data;
use super::event::{self, Event};
use super::routes::Node;
use super::{EXIT_FAILED, Myself, Refusal, complain, http, offspring, say};

/// Who tells the server to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// Whoever sends it a signal.
    Signals,
    /// Its launcher as well, over stdin.
    Launcher,
}

/// Runs the server to its end; the exit code.
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
            say(&format!("closed, exit code {}", plan.exit_code));
            return Ok(plan.exit_code);
        }
        if plan.crash_at.is_some_and(|at| at <= now) {
            complain(&format!("fatal error, exiting with code {crash_code}"));
            return Ok(crash_code);
        }
        if plan.ready_at.is_some_and(|at| at <= now) {
            plan.ready_at = None;
            node.ready.store(true, Ordering::SeqCst);
            say(&format!("started, node {}", node.config.node_name));
        }
        let Some(event) = next(&events, plan.next_deadline()) else { continue };
        let code = match event {
            Event::Signal(signal) => event::exit_code_after(signal, behaviour.ignore_term),
            Event::ShutdownMarker => Some(0),
            Event::LauncherGone => Some(EXIT_FAILED),
            // Only a launcher has a server.
            Event::ServerExited(_) => None,
        };
        if let (Some(code), None) = (code, plan.exit_at) {
            node.ready.store(false, Ordering::SeqCst);
            say("stopping ...");
            plan.ready_at = None;
            plan.exit_at = Some(Instant::now() + behaviour.stop_delay);
            plan.exit_code = code;
        }
    }
}

/// What happens when, if nothing else does.
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
    let listener = TcpListener::bind(("127.0.0.1", port))
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = listener
        .map_err(|error| Refusal::failed(format!("failed to bind http.port {port}: {error}")))?;
    let node = Arc::new(Node { config, data, ready: AtomicBool::new(false) });
    let answering = Arc::clone(&node);
    http::serve(listener, move |request| answering.answer(request));
    say(&format!("publish_address {{{address}}}"));
    Ok(node)
}

/// Leaves something behind in the temp dir at every start, as the real engines do.
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
