//! How a state is published: stored by more than half of the voting configuration, then committed.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use super::state::{self, Command, NodeInfo, State};
use super::wire::{self, Failure, Message, read_line, say_line};
use super::{Cluster, Mode, lock, routing};

/// How long a command may take at the master, including the publication.
const COMMAND: std::time::Duration = std::time::Duration::from_secs(30);

impl Cluster {
    /// Sends a command to the master, wherever it is.
    pub(crate) fn command(self: &Arc<Self>, command: Command) -> Result<Value, Failure> {
        let leader = match &self.lock().mode {
            Mode::Leader => self.me.clone(),
            Mode::Follower { leader, .. } => NodeInfo::clone(leader),
            Mode::Waiting | Mode::Candidate { .. } | Mode::Closed => {
                return Err(Failure::no_master());
            }
        };
        self.ask_member(&leader, Message::Command(command), COMMAND)
    }

    /// As master: executes a command.
    pub(super) fn command_here(self: &Arc<Self>, command: Command) -> Result<Value, Failure> {
        self.update(|state| state::apply(state, command))
    }

    /// As master: changes the state and publishes it.
    pub(super) fn update<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut State) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let _turn = lock(&self.publishing);
        let before = {
            let core = self.lock();
            if core.mode != Mode::Leader {
                return Err(Failure::no_master());
            }
            core.accepted.clone()
        };
        let mut next = before.clone();
        let done = change(&mut next)?;
        self.publish(&before, next)?;
        Ok(done)
    }

    /// As master, with `publishing` held: makes `next` the state, unless nothing changed.
    pub(super) fn publish(
        self: &Arc<Self>,
        before: &State,
        mut next: State,
    ) -> Result<(), Failure> {
        routing::reroute(&mut next, &self.allocation);
        state::reconfigure(&mut next);
        if next == *before {
            return Ok(());
        }
        next.version += 1;
        {
            let mut core = self.lock();
            if core.mode != Mode::Leader || core.term != next.term {
                return Err(Failure::no_master());
            }
            core.accepted = next.clone();
            self.persist(&core).map_err(|error| Failure::disk(&error))?;
        }
        let others: Vec<&NodeInfo> =
            next.nodes.values().filter(|node| node.id != self.me.id).collect();
        let mut kept = self.send_to_all(&others, || Message::Accept {
            leader: self.me.id.clone(),
            state: Box::new(next.clone()),
        });
        kept.insert(self.me.id.clone());
        if !state::is_quorum(&next, &kept) {
            let mut core = self.lock();
            if core.mode == Mode::Leader {
                self.become_candidate(&mut core);
            }
            return Err(Failure::no_master());
        }
        let (term, version) = (next.term, next.version);
        let reached: Vec<_> =
            others.iter().copied().filter(|node| kept.contains(&node.id)).collect();
        let applied = self.send_to_all(&reached, || Message::Commit { term, version });
        {
            // The master commits last, so what it answers is true on every member.
            let mut core = self.lock();
            if core.mode != Mode::Leader || core.term != next.term {
                return Err(Failure::no_master());
            }
            self.count(&mut core).map_err(|error| Failure::disk(&error))?;
        }
        // A member that did not store the state is removed.
        let lost = others.iter().filter(|node| !applied.contains(&node.id));
        let lost: Vec<_> = lost.map(|node| (node.id.clone(), node.ephemeral_id.clone())).collect();
        if !lost.is_empty() {
            self.lock().gone.extend(lost);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Sends a message to all of `nodes` at the same time; returns the ids of those that succeeded.
    pub(super) fn send_to_all(
        self: &Arc<Self>,
        nodes: &[&NodeInfo],
        message: impl Fn() -> Message + Sync,
    ) -> BTreeSet<String> {
        let limit = self.fault_detection;
        thread::scope(|scope| {
            let asked: Vec<_> = nodes
                .iter()
                .map(|node| {
                    let message = &message;
                    scope.spawn(move || {
                        let done = self.ask::<()>(&node.transport, &message(), limit);
                        done.is_ok().then(|| node.id.clone())
                    })
                })
                .collect();
            asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect()
        })
    }

    /// As member: stores a state of its master.
    pub(super) fn accept(&self, leader: &str, state: State) -> Result<(), Failure> {
        let mut core = self.lock();
        let mine = matches!(&core.mode, Mode::Follower { leader: mine, .. } if mine.id == leader);
        if !mine || state.term != core.term {
            return Err(Failure::no_master());
        }
        core.accepted = state;
        self.persist(&core).map_err(|error| Failure::disk(&error))
    }

    /// As member: commits the stored state.
    pub(super) fn commit(&self, term: u64, version: u64) -> Result<(), Failure> {
        let mut core = self.lock();
        if (core.accepted.term, core.accepted.version) != (term, version) || core.term != term {
            return Err(Failure::no_master());
        }
        self.count(&mut core).map_err(|error| Failure::disk(&error))
    }

    fn count(&self, core: &mut super::Core) -> std::io::Result<()> {
        let config = core.accepted.last_accepted_config.clone();
        if core.accepted.last_committed_config != config {
            core.accepted.last_committed_config = config;
            self.persist(core)?;
        }
        core.applied = Some(core.accepted.clone());
        self.changed.notify_all();
        Ok(())
    }
}

// The connection from the master to a member. While it is open, each relies on the other. If a
// process ends, the kernel closes it; if it is frozen, a ping is not answered.

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
