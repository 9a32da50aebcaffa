//! The voting configuration, as real engines change it: odd sizes, at least three if possible, listed
//! nodes before missing ones, no excluded node; and a majority of the new configuration is listed.

use std::collections::BTreeSet;

use super::engine::id_of;
use crate::Voting;

#[derive(Debug, Clone, Default)]
pub(crate) struct Votes {
    /// Ids of the voters.
    voters: BTreeSet<String>,
    /// Names of the nodes excluded from voting.
    pub(crate) excluded: BTreeSet<String>,
    /// The engine ignores exclusions.
    pub(crate) is_stuck: bool,
}

impl Votes {
    /// Only these vote.
    pub(crate) fn of(nodes: &[&str]) -> Self {
        let voters = nodes.iter().map(|node| id_of(node)).collect();
        Self { voters, ..Self::default() }
    }

    /// Whether these ids can elect a master. The first nodes form the cluster.
    pub(crate) fn can_elect(&mut self, eligible: &BTreeSet<String>) -> bool {
        if self.voters.is_empty() {
            self.voters = eligible.clone();
            self.reconfigure(eligible, None);
        }
        is_majority(&self.voters, eligible)
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.voters.contains(&id_of(node))
    }

    /// It is excluded and has no vote any more.
    pub(crate) fn is_moved(&self, node: &str) -> bool {
        self.excluded.contains(node) && !self.has(node)
    }

    pub(crate) fn reconfigure(&mut self, live: &BTreeSet<String>, master: Option<&str>) {
        if self.is_stuck {
            return;
        }
        let retired: BTreeSet<String> = self.excluded.iter().map(|node| id_of(node)).collect();
        let stay: BTreeSet<&String> = live.difference(&retired).collect();
        let had = self.voters.difference(&retired).count();
        let odd = stay.len().saturating_sub(1) / 2 * 2 + 1;
        let size = odd.max(if had >= 3 { 3 } else { 1 });
        let master = master.map(id_of);
        let mut order: Vec<&String> =
            stay.iter().copied().chain(self.voters.difference(&retired)).collect();
        order.sort_by_key(|id| {
            let is_master = Some(*id) == master.as_ref();
            (!is_master, !live.contains(*id), !self.voters.contains(*id), *id)
        });
        order.dedup();
        let voters: BTreeSet<String> = order.into_iter().take(size).cloned().collect();
        if is_majority(&voters, live) {
            self.voters = voters;
        }
    }

    pub(crate) fn exclude(&mut self, node: &str) -> bool {
        self.excluded.insert(node.to_owned());
        true
    }

    pub(crate) fn clear_exclusions(&mut self) -> bool {
        self.excluded.clear();
        true
    }

    pub(crate) fn observe(&self) -> Voting {
        Voting::Configurations {
            committed: self.voters.clone(),
            accepted: self.voters.clone(),
            excluded: self.excluded.clone(),
        }
    }

    /// The end of a line of the page; empty if no node is excluded.
    pub(crate) fn describe(&self) -> String {
        if self.excluded.is_empty() {
            return String::new();
        }
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        let voters = names(&self.voters).replace("id-", "");
        format!(", votes {voters}, excluded {}", names(&self.excluded))
    }
}

fn is_majority(voters: &BTreeSet<String>, live: &BTreeSet<String>) -> bool {
    2 * voters.intersection(live).count() > voters.len()
}
