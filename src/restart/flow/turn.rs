//! The result of one member's turn. A later step decides its effect on the restart.

use super::observed::not_held;
use crate::changes::Changes;
use crate::context::Context;
use crate::{Action, Blocker, Code, Ending, Ledger, Member, Outcome, Request, Restart};

/// A member of a restart, with what its turn is decided from. It is passed by reference.
pub(crate) struct TurnView<'t, 'a> {
    pub(crate) context: &'t Context<'a>,
    pub(crate) ledger: &'t Ledger,
    /// The restart as it was before the turns of all members.
    pub(crate) restart: &'t Restart,
    /// Place of the member in the restart.
    pub(crate) index: usize,
    pub(crate) member: &'t Member,
}

impl<'t, 'a> TurnView<'t, 'a> {
    /// The member at this place.
    pub(crate) fn of(
        context: &'t Context<'a>,
        ledger: &'t Ledger,
        restart: &'t Restart,
        index: usize,
    ) -> Self {
        Self { context, ledger, restart, index, member: &restart.members[index] }
    }
}

/// The result of one member's turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing can be done yet; prepared changes are dropped.
    Wait(Blocker),
    /// Requests, patches and events, and the reason to wait until they take effect.
    Act(Box<Changes>, Option<Blocker>),
    /// The member's entry in the ledger changes, with further changes that belong to this.
    Change(Box<Member>, Box<Changes>),
    /// The member was not stopped, and gives its slot back.
    GiveBack(GiveBack),
    /// The member must be brought back, for this reason.
    Abort(String),
    /// The member is finished, with further changes that belong to this.
    Finish(Ending, Box<Changes>),
}

/// Reason why a member gives its slot back.
#[derive(Debug)]
pub(crate) struct GiveBack {
    pub(crate) reason: String,
    /// True if a rule changed its answer: only this counts for the backoff until the next slot.
    pub(crate) by_rule: bool,
}

impl GiveBack {
    /// The reason, if people want no node to be stopped now for this request.
    pub(crate) fn if_held(context: &Context<'_>, request: &Request) -> Option<Self> {
        let held = not_held(context, request).err();
        held.map(|blocker| Self { reason: blocker.message, by_rule: false })
    }
}

impl From<Blocker> for Turn {
    fn from(blocker: Blocker) -> Self {
        Self::Wait(blocker)
    }
}

impl Turn {
    /// A turn with one request.
    pub(crate) fn act(action: Action) -> Self {
        Self::Act(Box::new(Changes::action(action)), None)
    }

    /// A turn with one request, and the reason to wait until it takes effect.
    pub(crate) fn act_and_wait(action: Action, code: Code, message: impl Into<String>) -> Self {
        let blocker = Blocker { code, message: message.into() };
        Self::Act(Box::new(Changes::action(action)), Some(blocker))
    }

    pub(crate) fn change(member: Member) -> Self {
        Self::Change(Box::new(member), Box::default())
    }

    pub(crate) fn finish(ending: Ending) -> Self {
        Self::Finish(ending, Box::default())
    }

    /// The end of a member that was neither stopped nor started.
    pub(crate) fn untouched(reason: &str) -> Self {
        Self::finish(Ending { outcome: Outcome::Aborted, reason: reason.to_owned() })
    }
}

/// A turn that waits.
pub(crate) fn wait(code: Code, message: impl Into<String>) -> Turn {
    Turn::Wait(Blocker { code, message: message.into() })
}
