//! How a state is published: stored by more than half of the voting configuration, then committed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use serde_json::Value;

use super::command::{self, Command};
use super::failure::Failure;
use super::state::{NodeInfo, State};
use super::wire::Message;
use super::{Cluster, Mode, lock, routing, voting};

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
        self.update(|state| command::apply(state, command))
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
        voting::reconfigure(&mut next);
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
        if !voting::is_quorum(&next, &kept) {
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
