//! A restart whose nodes are all done, and whose pods do not all show it yet. The apiserver may refuse
//! their patches for good, by an admission webhook for example; the restart ends all the same.

use std::time::Duration;

use crate::context::Context;
use crate::flow::begin::stuck::last_turn;
use crate::rules::name_list::NameList;
use crate::{Member, Restart};

/// What becomes of the restart.
pub(super) enum Unshown {
    /// It waits for the patches.
    Waits,
    /// The same, and it is seen now that they are late.
    Late,
    /// It ends without them, and says so.
    GivenUp(String),
}

/// The patches are waited for as long as a phase may take, from when it is seen that they are late: until
/// then nobody may have tried them.
pub(super) fn of(context: &Context<'_>, restart: &Restart, members: &[&Member]) -> Unshown {
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    let last_turn = last_turn(restart);
    match restart.stuck_since.filter(|at| *at >= last_turn) {
        Some(since) if now.since(since) >= phase => {
            let mut names = NameList::default();
            members.iter().for_each(|member| names.add(&member.node));
            let phase = humantime::format_duration(Duration::from_millis(phase));
            Unshown::GivenUp(format!(
                "the pods of {names} still show an old phase: they could not be patched for {phase}"
            ))
        }
        None if now.since(last_turn) >= phase => Unshown::Late,
        Some(_) | None => Unshown::Waits,
    }
}
