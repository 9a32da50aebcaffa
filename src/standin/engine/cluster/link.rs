//! The connection from the master to a member. While it is open, each relies on the other. If a
//! process ends, the kernel closes it; if it is frozen, a ping is not answered.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::failure::Failure;
use super::state::NodeInfo;
use super::wire::{self, Message, read_line, say_line};
use super::{Cluster, Mode};

/// Numbers the links of this process, so that the end of an old link does not end a newer one.
static LINKS: AtomicU64 = AtomicU64::new(0);

/// As master: the connection to one member.
pub(super) struct Link {
    number: u64,
    pub(super) stream: TcpStream,
}

impl Cluster {
    /// As member: follows the master, and returns when that is over.
    pub(super) fn follow(
        self: &Arc<Self>,
        term: u64,
        leader: NodeInfo,
        stream: &TcpStream,
        reader: &mut BufReader<&TcpStream>,
    ) -> io::Result<()> {
        let link = LINKS.fetch_add(1, Ordering::Relaxed);
        if let Err(failure) = self.begin_to_follow(term, leader, link)? {
            return say_line(stream, &Err(failure));
        }
        let end = say_line(stream, &Ok(Value::Null)).and_then(|()| {
            loop {
                read_line(reader)?;
                (&mut &*stream).write_all(b"pong\n")?;
            }
        });
        let mut core = self.lock();
        if matches!(&core.mode, Mode::Follower { link: current, .. } if *current == link) {
            self.become_candidate(&mut core);
        }
        end
    }

    fn begin_to_follow(
        &self,
        term: u64,
        leader: NodeInfo,
        link: u64,
    ) -> io::Result<Result<(), Failure>> {
        let mut core = self.lock();
        let outdated = term < core.term || (term == core.term && core.mode == Mode::Leader);
        if outdated || matches!(core.mode, Mode::Closed | Mode::Waiting) {
            return Ok(Err(Failure::no_master()));
        }
        if term > core.term {
            core.term = term;
            self.persist(&core)?;
        }
        if core.mode == Mode::Leader {
            self.become_candidate(&mut core);
        }
        core.mode = Mode::Follower { leader: Box::new(leader), link };
        self.changed.notify_all();
        Ok(Ok(()))
    }

    /// As master: connects to a node that is about to become a member.
    pub(super) fn link(self: &Arc<Self>, node: &NodeInfo, term: u64) -> Result<(), Failure> {
        let open = || {
            let follow = Message::Follow { term, leader: self.me.clone() };
            let stream = self.connect(&node.transport, &follow, self.fault_detection)?;
            let line = read_line(&mut BufReader::new(&stream))?;
            let answer: Result<Value, Failure> = serde_json::from_str(&line)?;
            io::Result::Ok((stream, answer))
        };
        let failed = |error: io::Error| Failure::not_connected(&node.name, &error);
        let (stream, answer) = open().map_err(failed)?;
        answer?;
        let kept = stream.try_clone().map_err(failed)?;
        let number = LINKS.fetch_add(1, Ordering::Relaxed);
        let mut core = self.lock();
        if core.term != term || matches!(core.mode, Mode::Closed | Mode::Follower { .. }) {
            return Err(Failure::no_master());
        }
        core.links.insert(node.id.clone(), Link { number, stream: kept });
        drop(core);
        let (cluster, node) = (Arc::clone(self), node.clone());
        wire::thread(move || cluster.watch(&node, number, &stream)).map(drop).map_err(failed)
    }

    fn watch(&self, node: &NodeInfo, number: u64, stream: &TcpStream) {
        let pings = || -> io::Result<()> {
            let mut reader = BufReader::new(stream);
            loop {
                stream.set_read_timeout(Some(self.fault_detection / 3))?;
                // The other side only answers, so this returns when it closes the connection, or
                // for the next request.
                match read_line(&mut reader) {
                    Err(error) if is_timeout(&error) => {}
                    Err(error) => return Err(error),
                    Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                }
                stream.set_read_timeout(Some(self.fault_detection * 2 / 3))?;
                (&mut &*stream).write_all(b"ping\n")?;
                read_line(&mut reader)?;
            }
        };
        // The reason does not matter: the member is gone.
        let _ = pings();
        let mut core = self.lock();
        // Unless there is a newer link, to the same process or to the next.
        if core.links.get(&node.id).is_some_and(|link| link.number == number) {
            core.links.remove(&node.id);
            core.gone.insert((node.id.clone(), node.ephemeral_id.clone()));
            self.changed.notify_all();
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
