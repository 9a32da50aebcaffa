//! The only thread that acts by itself: without a master it searches for one; as master it does
//! what is due. It sleeps in between; a member has nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::net::Shutdown as Closing;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::recovery::Due;
use super::state::{CopyState, now_ms};
use super::{Cluster, Core, Mode, routing};

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
                        shard: super::document::ShardId { uuid: index.uuid.clone(), number },
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
