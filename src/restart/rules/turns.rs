//! Who goes now: one walk over the candidates in their order.

use super::{Evaluation, Terms};
use crate::blocker::{Blocker, Check};
use crate::{Code, Manager, Pod, Strategy};

/// Lets every candidate whose turn it is `begin`, and answers for each of them, in their order,
/// whether it goes or why not. One that `begin` refuses takes no slot.
pub(crate) fn take_turns<'a>(
    pass: &mut Evaluation<'a>,
    candidates: &[&'a Pod],
    strategy: Strategy,
    mut begin: impl FnMut(&'a Pod, &'a Manager, &Terms) -> Check,
) -> Vec<(&'a Pod, Check)> {
    let mut walk = Walk::default();
    let turn = |pod: &&'a Pod| (*pod, walk.turn(pass, pod, strategy, &mut begin));
    candidates.iter().map(turn).collect()
}

/// A walk over candidates in their order.
#[derive(Debug, Default)]
pub(crate) struct Walk<'a> {
    /// Names of those that go.
    first: Vec<&'a str>,
    /// The elected master is last: a node that a passing state holds back goes before it.
    held_back: bool,
}

impl<'a> Walk<'a> {
    /// Lets the next candidate `begin`, if its turn has come.
    pub(crate) fn turn(
        &mut self,
        pass: &mut Evaluation<'a>,
        pod: &'a Pod,
        strategy: Strategy,
        begin: impl FnOnce(&'a Pod, &'a Manager, &Terms) -> Check,
    ) -> Check {
        if self.held_back && pass.is_elected(pod) {
            return later("the elected master goes last".to_owned());
        }
        if !pass.has_room() {
            return later(match self.first[..] {
                [] => "every slot is taken; its turn comes later".to_owned(),
                [first] => format!("{first} goes first; its turn comes later"),
                _ => format!("{} go first; its turn comes later", all_of(&self.first)),
            });
        }
        let begun =
            pass.may_go(pod, strategy).and_then(|manager| begin(pod, manager, &pass.terms(pod)));
        match &begun {
            Ok(()) => {
                pass.pick(&pod.uid);
                self.first.push(&pod.node);
            }
            Err(refusal) => self.held_back |= refusal.code.passes_by_itself(),
        }
        begun
    }
}

/// How many nodes a sentence names.
const NAMED: usize = 5;

/// `a`, `a and b`, `a, b and c`; of many the first few.
pub(crate) fn all_of(names: &[&str]) -> String {
    match names {
        [] => "nobody".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

fn later(message: String) -> Check {
    Err(Blocker { code: Code::NotItsTurn, message })
}
