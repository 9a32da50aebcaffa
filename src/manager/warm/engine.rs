//! One run of the engine, from its launch until none of its processes is left.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{Until, WarmError};
use crate::process::{self, Archive, ExitStatus, Launch, LaunchError, RUN_VARIABLE, Reaper, Tree};

/// How long an engine may take to accept connections on a slow builder.
const START_LIMIT: Duration = Duration::from_secs(300);
/// How long an engine may take to end; the JVM writes the archive meanwhile.
const STOP_LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long one read may take: a signal does not end it.
const READ_LIMIT: Duration = Duration::from_millis(200);
/// How long the engine's processes may take to end by KILL: one that waits for a disk does not.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Requests whose classes every node needs soon. Their answers do not matter: a secured engine refuses
/// them, and then its archive lacks some classes.
const REQUESTS: [(&str, &str, &str); 5] = [
    ("GET", "/_cluster/health?wait_for_status=yellow&timeout=10s", ""),
    ("PUT", "/stayput-warm/_doc/1?refresh=true", r#"{"number": 1}"#),
    ("GET", "/stayput-warm/_search?q=number:1", ""),
    ("POST", "/stayput-warm/_flush", ""),
    ("GET", "/_nodes", ""),
];

pub(super) struct Engine {
    tree: Tree,
    reaper: Reaper,
    address: SocketAddr,
    launched: Instant,
    until: Until,
    ended: Option<ExitStatus>,
}

impl Engine {
    /// Starts the command; its output is ours.
    pub(super) fn start(
        argv: Vec<OsString>,
        mut set_env: Vec<(OsString, OsString)>,
        http: u16,
        until: Until,
    ) -> Result<Self, LaunchError> {
        let cookie = format!("warm-{}", process::own_pid());
        set_env.push((RUN_VARIABLE.into(), cookie.clone().into()));
        let launched = Instant::now();
        let pid = process::launch(&Launch { argv, set_env })?.pid;
        Ok(Self {
            tree: Tree::new(pid, &cookie, !process::is_pid_1()),
            reaper: Reaper::new(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, http)),
            launched,
            until,
            ended: None,
        })
    }

    /// Waits until the engine accepts connections; returns the time since its launch.
    pub(super) fn until_serving(&mut self) -> Result<Duration, WarmError> {
        while TcpStream::connect(self.address).is_err() {
            self.reap();
            if let Some(status) = self.ended {
                return Err(WarmError::Ended(status.shell_code()));
            }
            self.pause(START_LIMIT, self.launched, "accept connections")?;
        }
        Ok(self.launched.elapsed())
    }

    /// Sends the requests.
    pub(super) fn use_once(&self) {
        for (method, target, body) in REQUESTS {
            let Ok(mut stream) = TcpStream::connect(self.address) else { return };
            let until = self.until.at_most(Instant::now() + ANSWER_LIMIT);
            let length = body.len();
            let request = format!(
                "{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = stream.write_all(request.as_bytes());
            read_until(&mut stream, &until);
        }
    }

    /// The archive that the server JVM was told to use, and whether it uses it.
    pub(super) fn archive(&mut self) -> Option<Archive> {
        self.tree.archive()
    }

    /// Stops the engine and waits until no process is left.
    pub(super) fn stop(mut self) -> Result<(), WarmError> {
        self.tree.signal_leader(libc::SIGTERM);
        let asked = Instant::now();
        while self.ended.is_none() {
            self.reap();
            self.pause(STOP_LIMIT, asked, "end")?;
        }
        Ok(())
    }

    fn reap(&mut self) {
        for reaped in self.reaper.reap() {
            if reaped.pid == self.tree.leader() && self.ended.is_none() {
                self.ended = Some(reaped.status);
                self.tree.leader_reaped();
            }
        }
    }

    fn pause(&self, limit: Duration, since: Instant, what: &'static str) -> Result<(), WarmError> {
        self.until.signalled()?;
        if since.elapsed() >= limit || self.until.left(PAUSE).is_none() {
            return Err(WarmError::Late { what, waited: since.elapsed() });
        }
        thread::sleep(PAUSE);
        Ok(())
    }
}

impl Drop for Engine {
    /// Kills the remaining processes, such as an agent that an image's entrypoint leaves in the
    /// background; after an error all.
    fn drop(&mut self) {
        let began = Instant::now();
        loop {
            self.tree.kill_all();
            self.reap();
            if self.tree.scan().is_empty() || began.elapsed() >= KILL_LIMIT {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Reads the answer, or the part of it that comes before the limit.
fn read_until(stream: &mut TcpStream, until: &Until) {
    let mut part = [0; 4096];
    while let Some(left) = until.left(READ_LIMIT) {
        if stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut part) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return,
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_that_goes_on_and_on_is_read_for_a_limited_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let server = thread::spawn(move || while server.write_all(b"more").is_ok() {});
        read_until(&mut stream, &Until::of(Instant::now() + Duration::from_millis(20)));
        drop(stream);
        server.join().unwrap();
    }
}
