//! What the lifecycle requests from the supervisor. Effects that can fail are answered by events.

use super::Prepared;
use stayput_api::{Accepted, ConfigChoice, Refusal};

/// What a generation is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeepAs {
    /// What an engine that comes back by itself runs on.
    Pinned,
    /// It became ready. If there is no last good one, there is nothing better: it is that at once.
    Candidate,
    /// It has proved itself.
    LastGood,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Verify and stage a config; answered by [`super::Event::Prepared`].
    Prepare {
        /// Which config.
        choice: ConfigChoice,
        /// The checksum it must have.
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
    /// Send TERM to what outlived leader and server.
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
    /// Its answer is not waited for any more.
    EndCheck,
    /// Answer what is open and close all connections; answered by [`super::Event::ServerClosed`].
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
