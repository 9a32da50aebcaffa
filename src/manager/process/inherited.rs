//! Processes that were the manager's descendants before the first launch: background jobs of the
//! script that executed the manager.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::identity::own_pid;
use super::procfs::{self, ProcUnusable, Process};
use super::reaper::{self, Children};

/// The manager's descendants from before the first launch, as after `sleep 300 & exec stayput run
/// …`. They do not belong to the engine: reported as strangers, never signalled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// Start times by pid.
    processes: BTreeMap<u32, u64>,
}

impl Inherited {
    /// Finds the processes; to be called before the first launch. Usually there are no children,
    /// and this costs one system call.
    ///
    /// # Errors
    /// `/proc` cannot be used. Then nothing is known about such processes.
    pub fn find() -> Result<Self, ProcUnusable> {
        procfs::check()?;
        if reaper::children() == Children::None {
            return Ok(Self::default());
        }
        let (processes, _) = procfs::processes()?;
        Ok(Self::among(&processes))
    }

    fn among(processes: &[Process]) -> Self {
        let mut found = BTreeSet::from([own_pid()]);
        // A child may be listed before its parent, so repeat until nothing more is found.
        loop {
            let before = found.len();
            let children = processes.iter().filter(|process| found.contains(&process.parent));
            let children: Vec<u32> = children.map(|process| process.pid).collect();
            found.extend(children);
            if found.len() == before {
                break;
            }
        }
        found.remove(&own_pid());
        let inherited = processes.iter().filter(|process| found.contains(&process.pid));
        let mut own = Self::default();
        own.processes.extend(inherited.map(|process| (process.pid, process.started)));
        own
    }

    /// True if there were no such processes.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// True if this is one of the processes, and not a later one with its pid.
    pub(super) fn contains(&self, process: &Process) -> bool {
        self.processes.get(&process.pid) == Some(&process.started)
    }
}
