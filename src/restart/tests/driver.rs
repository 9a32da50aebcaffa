//! A controller in a simulated cluster: plan after plan, carried out as the contract says.

use std::collections::BTreeSet;

use super::laws::Laws;
use super::page::Page;
use super::vain_waits::VainWaits;
use super::world::World;
use crate::tests::lint::lint;
use crate::{Action, Plan, Policy, Saved, Snapshot, plan};

/// What happens to one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionFate {
    Done,
    Lost,
    Doubled,
    /// It arrives this much later, in milliseconds; the controller does not see it.
    Late(u64),
    /// The controller ends before it, and another one starts without its memory.
    Crash,
    /// The controller ends right after it.
    CrashAfter,
}

/// How long the answers to a plan's requests take.
const ANSWER_TIME: u64 = 100;
/// How long a controller waits at least after something did not go as it should.
const RETRY_AFTER: u64 = 1_000;

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) world: World,
    pub(crate) policy: Policy,
    pub(crate) page: Page,
    pub(crate) laws: Laws,
    vain_waits: VainWaits,
    /// What the linter, the laws and the driver complain about.
    pub(crate) wrong: Vec<String>,
    /// Fates of the next actions, in order; all that follow are done.
    pub(crate) fates: Vec<ActionFate>,
    /// No controller runs.
    pub(crate) is_off: bool,
    /// The next request that tightens allocation arrives this much later, in milliseconds.
    pub(crate) slow_allocation: Option<u64>,
    /// The same for the next voting exclusion.
    pub(crate) slow_exclusion: Option<u64>,
    /// The same for the next stop.
    pub(crate) slow_stop: Option<u64>,
    /// How long a flush takes, in milliseconds; the controller waits for it.
    pub(crate) flush_time: u64,
    /// The least time between two plans while nothing is done, in milliseconds.
    pub(crate) idle: u64,
    pub(crate) flushed: BTreeSet<String>,
    /// The last actions, and how many changes of others had come by then: those may undo the
    /// actions.
    last: Option<(usize, Vec<Action>)>,
    /// Events created by this controller: each is created once.
    events: BTreeSet<crate::Event>,
    pub(crate) passes: usize,
    pub(crate) ledger_writes: usize,
    pub(crate) patches: usize,
    pub(crate) conflicts: usize,
    /// What every plan was made from, if that is to be kept.
    pub(crate) seen: Option<Vec<Saved>>,
}

impl Driver {
    pub(crate) fn new(world: World, policy: Policy) -> Self {
        Self {
            laws: Laws::new(&world),
            vain_waits: VainWaits::default(),
            page: Page::new(&world),
            world,
            policy,
            wrong: Vec::new(),
            fates: Vec::new(),
            is_off: false,
            slow_allocation: None,
            slow_exclusion: None,
            slow_stop: None,
            flush_time: 0,
            idle: ANSWER_TIME,
            flushed: BTreeSet::new(),
            last: None,
            events: BTreeSet::new(),
            passes: 0,
            ledger_writes: 0,
            patches: 0,
            conflicts: 0,
            seen: None,
        }
    }

    /// One snapshot, one plan and its actions; then time passes until the next plan.
    pub(crate) fn pass(&mut self, until: u64) {
        if self.is_off || self.world.object.is_gone() {
            self.vain_waits.end();
            let at = self.world.next().unwrap_or(until).min(until);
            self.world.advance(at.max(self.world.now + 1));
            self.page.note(&mut self.world, None);
            return;
        }
        let (snapshot, version) = self.world.observe(&self.flushed);
        let made = self.make(&snapshot);
        let wait = self.follow(&snapshot, version, &made);
        self.page.note(&mut self.world, Some(&made));
        let now = self.world.now;
        let next_plan = now + wait;
        let event = self.world.next().unwrap_or(next_plan);
        self.world.advance(next_plan.min(event.max(now + 1)).min(until.max(now + 1)));
        self.page.note(&mut self.world, None);
    }

    /// Runs for this time, or until `content` is true.
    pub(crate) fn run(&mut self, span: u64, mut content: impl FnMut(&Self) -> bool) -> bool {
        let until = self.world.now + span;
        let mut still = 0;
        while self.world.now < until {
            if content(self) {
                return true;
            }
            let before = self.world.now;
            self.pass(until);
            still = if self.world.now - before < ANSWER_TIME { still + 1 } else { 0 };
            if still > 500 {
                self.wrong.push("the controller runs hot".into());
                return false;
            }
        }
        content(self)
    }

    /// The plan for a snapshot. It must be the same twice, and without faults.
    pub(crate) fn make(&mut self, snapshot: &Snapshot) -> Plan {
        self.passes += 1;
        if let Some(seen) = &mut self.seen {
            seen.push(Saved::new(snapshot.clone(), self.policy.clone()));
        }
        let made = plan(snapshot, &self.policy);
        if made != plan(snapshot, &self.policy) {
            self.complain("the same snapshot gives two plans".into());
        }
        let mut complaints = lint(snapshot, &self.policy, &made);
        complaints.extend(self.vain_waits.look(snapshot, &made));
        for complaint in complaints {
            self.complain(complaint);
        }
        made
    }

    fn complain(&mut self, complaint: String) {
        let seconds = (self.world.now - super::world::START) / 1000;
        let known = format!(" s: {complaint}");
        if !self.wrong.iter().any(|line| line.ends_with(&known)) {
            self.wrong.push(format!("{seconds}{known}"));
        }
    }

    /// Carries a plan out; how long until the next plan, in milliseconds.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot, version: u64, made: &Plan) -> u64 {
        if let Some(Action::WriteLedger(ledger)) = made.actions.first() {
            self.write(snapshot, version, ledger, &made.actions[1..]);
            self.last = None;
            return ANSWER_TIME;
        }
        let mut new_actions: Vec<Action> =
            made.actions.iter().filter(|action| self.is_new(action)).cloned().collect();
        // They are done at the same time, and only a flush takes long.
        new_actions.sort_by_key(|action| matches!(action, Action::Flush { .. }));
        if new_actions.is_empty() {
            self.last = None;
            return made.requeue_after.max(self.idle);
        }
        let mut well = true;
        for action in &new_actions {
            let fate = self.fate_of(action);
            if fate == ActionFate::Crash {
                self.crash();
                return RETRY_AFTER;
            }
            well &= self.carry_out(action, fate);
            if fate == ActionFate::CrashAfter {
                self.crash();
                return RETRY_AFTER;
            }
        }
        if !well {
            self.last = None;
            return made.requeue_after.max(RETRY_AFTER);
        }
        let done = Some((self.world.changes_of_others, new_actions));
        // The short rest of a drain is asked for until it is over.
        let is_new = |action: &Action| !matches!(action, Action::EndDrain { .. });
        let is_new = done.as_ref().is_some_and(|(_, actions)| actions.iter().any(is_new));
        if self.last == done && is_new {
            self.complain(format!("done again though it was done: {done:?}"));
        }
        self.last = done;
        ANSWER_TIME
    }

    /// An event that is in every plan is created once.
    fn is_new(&mut self, action: &Action) -> bool {
        match action {
            Action::RecordEvent(event) => self.events.insert(event.clone()),
            _ => true,
        }
    }

    fn fate_of(&mut self, action: &Action) -> ActionFate {
        match action {
            Action::TightenAllocation { .. } if self.slow_allocation.is_some() => {
                self.slow_allocation.take().map_or(ActionFate::Done, ActionFate::Late)
            }
            Action::ExcludeVoter { .. } if self.slow_exclusion.is_some() => {
                self.slow_exclusion.take().map_or(ActionFate::Done, ActionFate::Late)
            }
            Action::Stop { .. } if self.slow_stop.is_some() => {
                self.slow_stop.take().map_or(ActionFate::Done, ActionFate::Late)
            }
            _ if self.fates.is_empty() => ActionFate::Done,
            _ => self.fates.remove(0),
        }
    }

    fn carry_out(&mut self, action: &Action, fate: ActionFate) -> bool {
        if let Action::PatchPod { .. } = action {
            self.patches += 1;
        }
        match fate {
            ActionFate::Lost | ActionFate::Crash => {
                self.page.action(&mut self.world, action, " (lost)");
                false
            }
            ActionFate::Late(by) => {
                self.page.action(&mut self.world, action, " (late)");
                let at = self.world.now + by;
                self.world.carry_out_at(at, action.clone());
                false
            }
            ActionFate::Done | ActionFate::Doubled | ActionFate::CrashAfter => {
                let done = self.world.carry_out(action);
                if fate == ActionFate::Doubled {
                    let _ = self.world.carry_out(action);
                }
                if let Action::Flush { node } = action {
                    self.world.advance(self.world.now + self.flush_time);
                    self.flushed.insert(node.clone());
                }
                self.page.action(&mut self.world, action, if done { "" } else { " (refused)" });
                self.laws.check(&self.world, &self.policy);
                done
            }
        }
    }

    fn write(
        &mut self,
        snapshot: &Snapshot,
        version: u64,
        ledger: &crate::Ledger,
        rest: &[Action],
    ) {
        let text = serde_json::to_string(ledger).unwrap();
        if serde_json::from_str::<crate::Ledger>(&text).ok().as_ref() != Some(ledger) {
            self.complain("the ledger is not read as it was written".into());
        }
        let fate = if self.fates.is_empty() { ActionFate::Done } else { self.fates.remove(0) };
        if matches!(fate, ActionFate::Lost | ActionFate::Crash) {
            self.crash();
            return;
        }
        if !self.world.object.write_ledger(version, ledger) {
            self.conflicts += 1;
            return;
        }
        self.ledger_writes += 1;
        self.laws.ledger(&self.world, &self.policy, &snapshot.ledger, ledger);
        let over = |ledger: &crate::Ledger| {
            ledger.restart.as_ref().map(|restart| restart.request.id.clone())
        };
        if over(&snapshot.ledger) != over(ledger) {
            self.flushed.clear();
        }
        for line in super::ledger_changes::describe(&snapshot.ledger, ledger) {
            self.world.happened("ledger", line);
        }
        if fate == ActionFate::CrashAfter {
            self.crash();
            return;
        }
        for action in rest {
            let _ = self.is_new(action);
            self.world.carry_out(action);
            self.page.action(&mut self.world, action, "");
        }
    }

    /// This controller ends and loses its memory.
    pub(crate) fn crash(&mut self) {
        self.world.happened("crash", "the controller ends; another one begins");
        self.flushed.clear();
        self.events.clear();
        self.last = None;
        self.world.looked_at = None;
        self.world.pods.iter_mut().for_each(|pod| pod.seen = None);
    }

    /// No restart is under way or queued, nothing is owed, and no pod has a phase.
    pub(crate) fn is_at_rest(&self) -> bool {
        let ledger = self.world.ledger();
        let shows = |pod: &super::world::SimPod| {
            [crate::annotation::PHASE, crate::annotation::SHOWN]
                .iter()
                .any(|key| pod.annotations.contains_key(*key))
        };
        ledger.restart.is_none()
            && ledger.queued.is_none()
            && ledger.debts.is_empty()
            && !self.world.pods.iter().filter(|pod| !pod.gone).any(shows)
    }

    /// All complaints, with those about the end of the run.
    pub(crate) fn verdict(&mut self) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.wrong);
        wrong.append(&mut self.laws.wrong);
        wrong.extend(self.laws.at_the_end(&self.world));
        wrong
    }
}
