//! Requests of the lifecycle to the supervisor. Effects that can fail are answered by events.

use super::Prepared;
use stayput_api::{Accepted, ConfigChoice, Refusal};

/// Role in which a generation is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeepAs {
    /// An engine that comes back by itself runs on this generation.
    Pinned,
    /// The generation became ready. If there is no last good one, it becomes that at once.
    Candidate,
    /// The generation has proved itself.
    LastGood,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Verify and stage a config; answered by [`super::Event::Prepared`].
    Prepare {
        /// The config to prepare.
        choice: ConfigChoice,
        /// Checksum that the config must have.
        expected: Option<String>,
        /// The kept generation with this checksum is to be used instead. If there is none, `choice`
        /// is used all the same: an engine that comes back by itself must come back.
        pinned: Option<String>,
    },
    /// Write this version of the journal ([`super::Lifecycle::journaled_intent`]); answered by
    /// [`super::Event::Persisted`] or [`super::Event::PersistFailed`].
    Persist(u64),
    /// Spawn the leader, if the prepared config is still the mounted one; answered by
    /// [`super::Event::Spawned`], [`super::Event::SpawnFailed`] or
    /// [`super::Event::ConfigOutdated`].
    Spawn(Prepared),
    SignalLeader(i32),
    /// Signal server JVMs that outlived the leader.
    SignalServer(i32),
    /// Send TERM to the processes that outlived leader and server.
    TermStragglers,
    /// Send QUIT to the server JVM, so that it prints its threads.
    DumpThreads,
    /// Send KILL to every process of the engine.
    KillTree,
    /// Scan the tree; answered by [`super::Event::Tree`].
    ScanTree,
    /// Keep the generation of the present run; as the last good one it is answered by
    /// [`super::Event::Kept`].
    Keep(KeepAs),
    /// Ask the program whether it can take over; answered by [`super::Event::ProgramChecked`].
    CheckProgram,
    /// Stop waiting for the answer to [`Self::CheckProgram`].
    EndCheck,
    /// Answer open requests and close all connections; answered by [`super::Event::ServerClosed`].
    CloseServer,
    /// Execute the program; answered by [`super::Event::NotExecuted`] if that fails.
    Execute,
    /// Serve again: the program was not executed, for this reason.
    OpenServer(String),
    /// Answer the request that is being decided.
    Reply(Result<Accepted, Refusal>),
    /// End the manager with this code.
    Exit(i32),
}
