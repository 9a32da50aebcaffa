//! The only thread that acts by itself: without a master it searches for one; as master it does
//! what is due. It sleeps in between; a member has nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Shutdown as Closing;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};
use std::{mem, thread};

use super::replication::Due;
use super::state::{self, CopyState, NodeInfo, State, now_ms};
use super::wire::{Failure, Hello, Message};
use super::{Cluster, Core, Mode, lock, routing};
use crate::engine::data::{self, ShardId};
use crate::engine::print_line;

/// The pause between two attempts to find a master: short at first, then as in the real engines.
const EAGER: Duration = Duration::from_millis(100);
const PATIENT: Duration = Duration::from_millis(500);

impl Cluster {
    /// Runs until the node leaves.
    pub(super) fn coordinate(self: &Arc<Self>) {
        loop {
            let core = self.lock();
            match core.mode.clone() {
                Mode::Closed => return,
                Mode::Waiting | Mode::Follower { .. } => drop(self.sleep(core, None)),
                Mode::Leader => self.work(core),
                Mode::Candidate { since } => {
                    drop(core);
                    if self.transport.is_some() {
                        self.seek(since);
                    } else {
                        self.elect_itself();
                    }
                    let core = self.lock();
                    if matches!(core.mode, Mode::Candidate { .. }) {
                        let eager = since.elapsed() < Duration::from_secs(5);
                        drop(self.sleep(core, Some(if eager { EAGER } else { PATIENT })));
                    }
                }
            }
        }
    }

    /// As master: does one thing that is due, or sleeps until the next one is.
    fn work(self: &Arc<Self>, mut core: MutexGuard<'_, Core>) {
        let gone = mem::take(&mut core.gone);
        if !gone.is_empty() {
            drop(core);
            self.expel(&gone);
            return;
        }
        let (due, next_recovery) = self.recoveries(&core, now_ms());
        if !due.is_empty() {
            core.recovering.extend(due.values().flatten().map(Due::key));
            drop(core);
            self.start_recoveries(due);
            return;
        }
        let deadline = routing::next_deadline(&core.accepted);
        if deadline.is_some_and(|at| at <= now_ms()) {
            drop(core);
            // Publishing allocates again. If it failed, this node is not the master any more.
            let _ = self.update(|_| Ok(()));
            return;
        }
        let next = [next_recovery, deadline].into_iter().flatten().min();
        let left = next.map(|at| Duration::from_millis(at.saturating_sub(now_ms())));
        drop(self.sleep(core, left));
    }

    /// As master: removes members that are gone.
    fn expel(self: &Arc<Self>, gone: &BTreeSet<(String, String)>) {
        // If it failed, this node is not the master any more.
        let _ = self.update(|state| {
            let is = |(id, ephemeral): &&(String, String)| {
                state.nodes.get(id).is_some_and(|node| node.ephemeral_id == *ephemeral)
            };
            let gone = gone.iter().filter(is).map(|(id, _)| id.clone()).collect();
            routing::remove_nodes(state, &gone, "NODE_LEFT");
            Ok(())
        });
        let mut core = self.lock();
        for (id, _) in gone {
            let is_out = core.applied.as_ref().is_some_and(|state| !state.nodes.contains_key(id));
            if let Some(link) = core.links.remove(id).filter(|_| is_out) {
                // It may still consider itself a member: this message ends that.
                let _ = link.stream.shutdown(Closing::Both);
            }
        }
    }

    /// Copies that can begin to recover now, by node, and when the next copy can.
    fn recoveries(&self, core: &Core, now: u64) -> (BTreeMap<String, Vec<Due>>, Option<u64>) {
        let mut due: BTreeMap<String, Vec<Due>> = BTreeMap::new();
        let mut next = None;
        let wait = u64::try_from(self.recovery.as_millis()).unwrap_or(u64::MAX);
        let indices = core.applied.iter().flat_map(|state| &state.indices);
        for (name, index) in indices {
            for (number, shard) in index.shards.iter().enumerate() {
                for copy in &shard.copies {
                    let CopyState::Initializing { node, since_ms } = &copy.place else { continue };
                    let recovery = Due {
                        index: name.clone(),
                        shard: ShardId { uuid: index.uuid.clone(), number },
                        node: node.clone(),
                        primary: copy.primary,
                    };
                    if core.recovering.contains(&recovery.key()) {
                        continue;
                    }
                    // A primary has its documents already.
                    let at = if copy.primary { 0 } else { since_ms.saturating_add(wait) };
                    if at <= now {
                        due.entry(node.clone()).or_default().push(recovery);
                    } else {
                        next = Some(next.unwrap_or(at).min(at));
                    }
                }
            }
        }
        (due, next)
    }

    /// How soon a failed step is tried again.
    pub(super) fn pause(&self) {
        let until = Instant::now() + PATIENT;
        let mut core = self.lock();
        while core.mode != Mode::Closed && Instant::now() < until {
            core = self.sleep(core, Some(until.saturating_duration_since(Instant::now())));
        }
    }
}

// How a node without a master finds one: it asks every node it knows, joins the master they have,
// or tries to be elected. Of several candidates the one with the newest state comes first, then by
// name, so that tests know the next master; in the real engines this is random.

/// A node that does not answer within this time counts as absent.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a candidate waits for a better one, which may itself wait for the answer of a frozen
/// node: two elections at the same time would split the votes.
const PRECEDENCE: Duration = HELLO_TIMEOUT.saturating_mul(3);

impl Cluster {
    /// What this node reports to a node that asks.
    pub(super) fn hello(&self) -> Hello {
        let core = self.lock();
        let leader = match &core.mode {
            Mode::Leader => Some(self.me.clone()),
            Mode::Follower { leader, .. } => Some(NodeInfo::clone(leader)),
            Mode::Waiting | Mode::Candidate { .. } | Mode::Closed => None,
        };
        let last = (core.accepted.term, core.accepted.version);
        Hello { node: self.me.clone(), leader, term: core.term, last }
    }

    /// What a node reports about itself now.
    pub(crate) fn ask_about(&self, node: &NodeInfo) -> Result<NodeInfo, Failure> {
        if node.id == self.me.id {
            return Ok(self.me.clone());
        }
        self.ask::<Hello>(&node.transport, &Message::Hello, HELLO_TIMEOUT).map(|hello| hello.node)
    }

    /// One attempt to find a master.
    fn seek(self: &Arc<Self>, since: Instant) {
        let seen = self.discover();
        if let Some(leader) = self.leader_among(&seen) {
            let join = Message::Join { node: self.me.clone(), term: self.lock().term };
            // Refused or unanswered: the next attempt is soon.
            let _ = self.ask::<()>(&leader.transport, &join, self.fault_detection);
            return;
        }
        let base = self.lock().accepted.clone();
        let Some(base) = self.bootstrapped(base, &seen) else { return };
        let mine = (base.term, base.version);
        let better = seen.iter().filter(|other| {
            let theirs = (other.last, std::cmp::Reverse(&other.node.name));
            other.node.is_master_eligible()
                && base.last_committed_config.contains(&other.node.id)
                && theirs > (mine, std::cmp::Reverse(&self.me.name))
        });
        let precedence = PRECEDENCE * u32::try_from(better.count()).unwrap_or(u32::MAX);
        if self.me.is_master_eligible() && since.elapsed() >= precedence {
            // No majority: the next attempt is soon.
            let _ = self.stand(base, &seen);
        }
    }

    /// No other node is known, so there is no other candidate.
    pub(super) fn elect_itself(self: &Arc<Self>) {
        let mut base = self.lock().accepted.clone();
        base.last_committed_config = [self.me.id.clone()].into();
        base.last_accepted_config.clone_from(&base.last_committed_config);
        if let Err(failure) = self.stand(base, &[]) {
            print_line(&format!("no master: {:?}", failure.reason));
        }
    }

    /// All other nodes that can be reached, by id.
    fn discover(self: &Arc<Self>) -> Vec<Hello> {
        let known = self.lock().accepted.nodes.clone();
        let mut addresses: BTreeSet<String> =
            known.into_values().map(|node| node.transport).collect();
        for seed in self.transport.iter().flat_map(|transport| &transport.seeds) {
            addresses.insert(if seed.contains(':') {
                seed.clone()
            } else {
                format!("{seed}:9300")
            });
        }
        addresses.remove(&self.me.transport);
        let answers: Vec<Hello> = thread::scope(|scope| {
            let asked: Vec<_> = addresses
                .iter()
                .map(|address| {
                    scope.spawn(move || self.ask(address, &Message::Hello, HELLO_TIMEOUT))
                })
                .collect();
            asked.into_iter().filter_map(|asked| asked.join().ok()?.ok()).collect()
        });
        let by_id: BTreeMap<String, Hello> =
            answers.into_iter().map(|hello| (hello.node.id.clone(), hello)).collect();
        by_id.into_values().filter(|hello| hello.node.id != self.me.id).collect()
    }

    /// The master that one of them reports, if it can be reached.
    fn leader_among(&self, seen: &[Hello]) -> Option<NodeInfo> {
        let claimed = seen.iter().filter_map(|hello| hello.leader.as_ref());
        let claimed: BTreeMap<&String, &NodeInfo> = claimed.map(|node| (&node.id, node)).collect();
        let leads = |hello: &Hello| hello.leader.as_ref().is_some_and(|it| it.id == hello.node.id);
        let there = claimed.into_values().filter(|node| node.id != self.me.id).find(|node| {
            match seen.iter().find(|hello| hello.node.id == node.id) {
                Some(hello) => leads(hello),
                // Its members may not have noticed yet that it is gone.
                None => self
                    .ask::<Hello>(&node.transport, &Message::Hello, HELLO_TIMEOUT)
                    .is_ok_and(|hello| leads(&hello)),
            }
        });
        there.cloned()
    }

    /// The state to continue with, or the initial one.
    fn bootstrapped(&self, base: State, seen: &[Hello]) -> Option<State> {
        if !base.last_committed_config.is_empty() {
            return Some(base);
        }
        let initial = &self.transport.as_ref()?.initial_masters;
        if !initial.contains(&self.me.name) {
            return None;
        }
        let mut nodes: Vec<NodeInfo> = seen.iter().map(|hello| hello.node.clone()).collect();
        nodes.push(self.me.clone());
        let config = state::bootstrap(initial, &nodes)?;
        Some(State {
            last_committed_config: config.clone(),
            last_accepted_config: config,
            ..State::default()
        })
    }

    /// Votes for a candidate with a state as new as ours, unless there is a master.
    pub(super) fn vote(&self, term: u64, last: (u64, u64)) -> Result<(), Failure> {
        let mut core = self.lock();
        let free = matches!(core.mode, Mode::Candidate { .. });
        let newer = last >= (core.accepted.term, core.accepted.version);
        if !free || term <= core.term || !newer || !self.me.is_master_eligible() {
            return Err(Failure::no_master());
        }
        core.term = term;
        self.persist(&core).map_err(|error| Failure::disk(&error))
    }

    /// Tries to have this node elected, to continue with `base`.
    fn stand(self: &Arc<Self>, base: State, seen: &[Hello]) -> Result<(), Failure> {
        let mut votes: BTreeSet<String> =
            seen.iter().map(|hello| hello.node.id.clone()).chain([self.me.id.clone()]).collect();
        if !state::is_quorum(&base, &votes) {
            return Err(Failure::no_master());
        }
        let term = {
            let mut core = self.lock();
            if !matches!(core.mode, Mode::Candidate { .. }) {
                return Err(Failure::no_master());
            }
            core.term = seen.iter().map(|hello| hello.term).fold(core.term, u64::max) + 1;
            self.persist(&core).map_err(|error| Failure::disk(&error))?;
            core.term
        };
        let others: Vec<&NodeInfo> = seen.iter().map(|hello| &hello.node).collect();
        let last = (base.term, base.version);
        votes = self.send_to_all(&others, || Message::Vote { term, last });
        votes.insert(self.me.id.clone());
        if !state::is_quorum(&base, &votes) {
            return Err(Failure::no_master());
        }
        let members: Vec<NodeInfo> = thread::scope(|scope| {
            let linked: Vec<_> = others
                .into_iter()
                .map(|node| scope.spawn(move || self.link(node, term).ok().map(|()| node.clone())))
                .collect();
            linked.into_iter().filter_map(|linked| linked.join().ok().flatten()).collect()
        });
        self.lead(base, term, members)
    }

    /// Begins as master, with these members.
    fn lead(
        self: &Arc<Self>,
        base: State,
        term: u64,
        mut members: Vec<NodeInfo>,
    ) -> Result<(), Failure> {
        members.push(self.me.clone());
        let _turn = lock(&self.publishing);
        {
            let mut core = self.lock();
            if core.term != term || !matches!(core.mode, Mode::Candidate { .. }) {
                return Err(Failure::no_master());
            }
            core.mode = Mode::Leader;
        }
        let mut next = base.clone();
        let stayed = |id: &String| {
            let before = base.nodes.get(id).map(|node| &node.ephemeral_id);
            members.iter().any(|node| node.id == *id && Some(&node.ephemeral_id) == before)
        };
        let (stayed, gone): (Vec<_>, Vec<_>) = base.nodes.keys().cloned().partition(stayed);
        let cold = stayed.is_empty();
        let reason = if cold { "CLUSTER_RECOVERED" } else { "NODE_LEFT" };
        routing::remove_nodes(&mut next, &gone.into_iter().collect(), reason);
        if cold {
            next.transient.clear();
        }
        if next.cluster_uuid.is_empty() {
            next.cluster_uuid = data::random_id().map_err(|error| Failure::disk(&error))?;
        }
        next.term = term;
        next.master = Some(self.me.id.clone());
        next.nodes = members.into_iter().map(|node| (node.id.clone(), node)).collect();
        self.publish(&base, next)?;
        print_line(&format!("elected-as-master in term {term}"));
        Ok(())
    }

    /// As master: adds a node as a member.
    pub(super) fn admit(self: &Arc<Self>, node: NodeInfo, term: u64) -> Result<(), Failure> {
        let mine = {
            let mut core = self.lock();
            if core.mode == Mode::Leader && term > core.term {
                // It voted in an election that failed, so it only accepts a newer term.
                core.term = term;
                self.become_candidate(&mut core);
            }
            if core.mode != Mode::Leader {
                return Err(Failure::no_master());
            }
            core.term
        };
        self.link(&node, mine)?;
        self.update(|state| {
            // An earlier process of the node, or the same one after a broken connection.
            if state.nodes.contains_key(&node.id) {
                routing::remove_nodes(state, &[node.id.clone()].into(), "NODE_LEFT");
            }
            state.nodes.insert(node.id.clone(), node);
            Ok(())
        })
    }
}
