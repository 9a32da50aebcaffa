//! What one member's turn comes to, before it is decided what that means for the restart.

use crate::changes::Changes;
use crate::{Action, Blocker, Code, Ending, Member, Outcome};

/// What one member's turn comes to.
#[derive(Debug)]
pub(super) enum Turn {
    /// Nothing can be done yet, and nothing is left of what was prepared.
    Wait(Blocker),
    /// Requests, patches and events, and what is waited for meanwhile.
    Act(Box<Changes>, Option<Blocker>),
    /// Its entry in the ledger changes, and what belongs to that.
    Change(Box<Member>, Box<Changes>),
    /// It must be brought back, for this reason.
    Abort(String),
    /// It is over for this member; what belongs to that is written down with it.
    Finish(Ending, Box<Changes>),
}

impl From<Blocker> for Turn {
    fn from(blocker: Blocker) -> Self {
        Self::Wait(blocker)
    }
}

impl Turn {
    /// One request.
    pub(super) fn act(action: Action) -> Self {
        Self::Act(Box::new(Changes::action(action)), None)
    }

    /// One request, and what is waited for meanwhile.
    pub(super) fn act_and_wait(action: Action, code: Code, message: impl Into<String>) -> Self {
        let blocker = Blocker { code, message: message.into() };
        Self::Act(Box::new(Changes::action(action)), Some(blocker))
    }

    pub(super) fn change(member: Member) -> Self {
        Self::Change(Box::new(member), Box::default())
    }

    pub(super) fn finish(ending: Ending) -> Self {
        Self::Finish(ending, Box::default())
    }

    /// The end of a member that nothing was done to.
    pub(super) fn untouched(reason: &str) -> Self {
        Self::finish(Ending { outcome: Outcome::Aborted, reason: reason.to_owned() })
    }
}

/// A turn that waits.
pub(super) fn wait(code: Code, message: impl Into<String>) -> Turn {
    Turn::Wait(Blocker { code, message: message.into() })
}
