//! Saves what a reconciler decides from, all along a test, as `kubectl stayput snapshot` would:
//! `src/restart/tests/snapshots.rs` chooses from it.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::http::exchange;
use super::ports::free_loopback_port;

/// The directory to save to; without it nothing is recorded.
const DIRECTORY: &str = "STAYPUT_RECORD_SNAPSHOTS";
/// A test that waits for long is not of interest all the time.
const MOST: usize = 1_000;

/// Records until it is dropped.
#[derive(Debug)]
pub struct Recorder {
    /// Where the reconciler is to serve `/snapshots`.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Recorder {
    /// A recorder for one SearchCluster, if the environment asks for recording. `kind` is the beginning of the
    /// names of its files.
    pub fn start(kind: &str, namespace: &str, cluster: &str, pause: Duration) -> Option<Self> {
        let directory = PathBuf::from(std::env::var_os(DIRECTORY)?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_loopback_port()));
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let path = format!("/snapshots/{namespace}/{cluster}");
        let test = thread::current().name().unwrap_or("main").replace("::", ".");
        let name = format!("{kind}.{test}.{}", address.port());
        thread::spawn(move || record((address, &path, pause), &directory.join(name), &is_over));
        Some(Self { address, ended })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Saves each snapshot that differs in more than its time from the one before.
fn record((address, path, pause): (SocketAddr, &str, Duration), file: &Path, is_over: &AtomicBool) {
    let (mut last, mut count) = (Value::Null, 0);
    while !is_over.load(Ordering::Relaxed) && count < MOST {
        thread::sleep(pause);
        let Some(mut saved) = ask(address, path) else { continue };
        let now = saved["snapshot"]["now"].take();
        saved["snapshot"]["freshId"].take();
        if saved == last {
            continue;
        }
        last = saved.clone();
        saved["snapshot"]["now"] = now;
        saved["snapshot"]["freshId"] = "fresh".into();
        let file = file.with_added_extension(format!("{count:03}.json"));
        std::fs::write(file, saved.to_string()).expect("the directory can be written");
        count += 1;
    }
}

fn ask(address: SocketAddr, path: &str) -> Option<Value> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let answer = exchange(stream, ("GET", path), None).ok()?;
    (answer.status == 200).then_some(answer.body)
}
