//! The steps of a plan, in their order. Each is a function of the snapshot and of the ledger as the
//! steps before have changed it; what it returns is merged by [`Draft`], which alone changes a
//! ledger.
//!
//! From an annotation to a stop request; the order of the steps themselves is in the tables below:
//!
//! 1. [`requests`]: what people and the spec ask for is accepted into the ledger, once. A SearchCluster that
//!    is being deleted accepts nothing.
//! 2. [`labels`] of operators' pods go ahead or back, and [`debts`] of earlier steps are paid.
//! 3. Members of a rolling or immediate restart: `advance_member` lets each that holds a slot take
//!    its next step: [`member::stop`], then [`member::start`]; or, if it is aborted,
//!    [`member::bring_back`]. Then `choose_next` ([`begin`]) gives slots to
//!    those whose turn it is. In a [`coordinated`] restart one of `begin_all`, `stop_all` and
//!    `start_all`, or `advance_member` while all members are turned back.
//! 4. [`keep_stopped`]: nodes that are to be kept stopped.
//! 5. [`leave`]: nodes that leave a declared cluster.
//! 6. [`finish`]: ends the restart once no member is left, and shows how far it is.
//!
//! While the apiserver does not answer there is no plan: only [`starts_in_ledger`] are sent. While
//! there are [`awaited_starts`], the engine is not waited for.
//!
//! Shared parts of the steps: [`turn`] (the result of a member's turn), [`engine`] (changes on the
//! engine around a stop), [`answers`] (our requests in a manager's status), [`observed`] (facts of the
//! snapshot), [`phases`] and [`target`].

mod answers;
mod begin;
mod coordinated;
mod debts;
mod engine;
mod finish;
mod keep_stopped;
mod labels;
mod leave;
mod member;
mod observed;
mod phases;
mod requests;
mod target;
mod turn;

use crate::changes::Changes;
use crate::changes::{Draft, PlanStep, Run};
use crate::flow::begin::choose_next;
use crate::flow::coordinated::start_all::start_all;
use crate::flow::coordinated::stop_all::stop_all;
use crate::flow::coordinated::{begin_all, supersede};
use crate::flow::finish::report_progress;
use crate::flow::phases::show_phases;
use crate::flow::requests::pod_phases::adopt_phases;
use crate::flow::requests::{
    accept_cancel, accept_request, claim_phase, configs, drift, end_for_deletion, open_queued,
    operator_phases, pod_phases, put_back, report_queued, report_unknown_names, update,
};
use crate::ledger::LedgerChange;
use crate::{Context, LATE_REQUEST_WINDOW, Ledger, MemberStep, Restart, Strategy, ended_recently};

pub use debts::starts::{awaited_starts, start_is_due, starts_in_ledger};
pub use leave::{LeavePlan, leave_plan};
pub(crate) use member::update::frozen_update::planned_update;
pub(crate) use member::update::rollback::set_back_next;
pub(crate) use phases::phase_of;
pub(crate) use requests::operator_phases::why_done;
pub(crate) use requests::pod_phases::why_kept;
pub use requests::update::changes_to_come;

/// All steps for this snapshot, in their order.
pub(crate) fn decide<'c, 'a>(context: &'c Context<'a>) -> Draft<'c, 'a> {
    let mut draft = Draft::new(context);
    each_step(&mut draft, |draft, step| draft.run(step));
    draft
}

/// The steps in their order, to be called one by one: which steps there are for the members depends
/// on what the steps before have changed.
pub(crate) fn each_step<'c, 'a>(
    draft: &mut Draft<'c, 'a>,
    mut take: impl FnMut(&mut Draft<'c, 'a>, &PlanStep),
) {
    let accept: &[PlanStep] =
        if draft.context().snapshot.cluster.deleting { &ACCEPT_NOTHING } else { &ACCEPT };
    accept.iter().for_each(|step| take(draft, step));
    PAY_DEBTS.iter().for_each(|step| take(draft, step));
    let members = steps_of(draft.ledger().restart.as_ref());
    members.iter().for_each(|step| take(draft, step));
    KEEP_STOPPED.iter().for_each(|step| take(draft, step));
    FINISH.iter().for_each(|step| take(draft, step));
}

/// The steps of the members of this restart.
fn steps_of(restart: Option<&Restart>) -> &'static [PlanStep] {
    let Some(restart) = restart else { return &[] };
    let is_any = |step| restart.members.iter().any(|member| member.step == step);
    match restart.request.strategy {
        Strategy::Immediate | Strategy::Rolling => &ROLLING,
        Strategy::Coordinated if is_any(MemberStep::Aborting) || is_any(MemberStep::GivingBack) => {
            &COORDINATED_BACK
        }
        Strategy::Coordinated if is_any(MemberStep::Scheduled) => &COORDINATED_BEGIN,
        Strategy::Coordinated if !is_any(MemberStep::Restarting) => &[],
        Strategy::Coordinated if restart.frozen.is_some() => &COORDINATED_START,
        Strategy::Coordinated => &COORDINATED_STOP,
    }
}

const fn once(name: &'static str, step: fn(&Context<'_>, &Ledger) -> Changes) -> PlanStep {
    PlanStep { name, run: Run::Once(step) }
}

const ADVANCE_MEMBER: PlanStep =
    PlanStep { name: "advance_member", run: Run::EachMember(member::advance_member) };

const ACCEPT: [PlanStep; 18] = [
    once("correct_times", correct_times),
    once("remember_configs", configs::remember_configs),
    once("remember_ignored_changes", configs::remember_ignored_changes),
    once("adopt_phases", adopt_phases),
    once("claim_phase", claim_phase),
    once("accept_request", accept_request),
    once("accept_operator_phases", operator_phases::accept_operator_phases),
    once("accept_cancel", accept_cancel),
    once("supersede", supersede::supersede),
    once("report_queued", report_queued),
    once("request_for_update", update::request_for_update),
    once("start_put_back", put_back::start_put_back),
    once("request_for_drift", drift::request_for_drift),
    once("open_queued", open_queued),
    once("report_unknown_names", report_unknown_names),
    once("apply_people_changes", pod_phases::apply_people_changes),
    once("end_at_deadline", finish::end_at_deadline),
    once("end_one_by_one", configs::end_one_by_one),
];

const ACCEPT_NOTHING: [PlanStep; 3] = [
    once("correct_times", correct_times),
    once("end_for_deletion", end_for_deletion),
    once("report_unknown_names", report_unknown_names),
];

const PAY_DEBTS: [PlanStep; 6] = [
    once("move_labels", labels::move_labels),
    once("pay_starts", debts::pay_starts),
    once("pay_allocation", debts::pay_allocation),
    once("pay_records", debts::pay_records),
    once("delete_late_records", debts::delete_late_records),
    once("pay_exclusion", engine::voting::pay),
];

const ROLLING: [PlanStep; 2] = [ADVANCE_MEMBER, once("choose_next", choose_next)];

const COORDINATED_BACK: [PlanStep; 1] = [ADVANCE_MEMBER];

const COORDINATED_BEGIN: [PlanStep; 1] = [once("begin_all", begin_all)];

const COORDINATED_STOP: [PlanStep; 1] = [once("stop_all", stop_all)];

const COORDINATED_START: [PlanStep; 1] = [once("start_all", start_all)];

const KEEP_STOPPED: [PlanStep; 2] = [
    once("forget_replaced", keep_stopped::forget_replaced),
    PlanStep { name: "keep_stopped", run: Run::EachPod(keep_stopped::keep_stopped) },
];

const FINISH: [PlanStep; 7] = [
    once("leave", leave::leave),
    once("finish_restart", finish::finish_restart),
    once("report_progress", report_progress),
    once("show_phases", show_phases),
    once("report_leaving", finish::report_leaving),
    once("release_finalizer", finish::release_finalizer),
    once("expect_late_requests", expect_late_requests),
];

/// Plans again soon after a restart's end, while a request of ours that was slow may still arrive.
fn expect_late_requests(context: &Context<'_>, _: &Ledger) -> Changes {
    let requeue = ended_recently(context.snapshot).then_some(LATE_REQUEST_WINDOW / 6);
    Changes { requeue, ..Changes::default() }
}

/// Names of all steps.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let groups: [&[PlanStep]; 9] = [
        &ACCEPT_NOTHING,
        &ACCEPT,
        &PAY_DEBTS,
        &ROLLING,
        &COORDINATED_BEGIN,
        &COORDINATED_STOP,
        &COORDINATED_START,
        &KEEP_STOPPED,
        &FINISH,
    ];
    groups.into_iter().flatten().map(|step| step.name)
}

/// Usual clock skew, in milliseconds: smaller differences are ignored, and deadlines are longer.
const CLOCK_SKEW: u64 = 10_000;

/// Sets times in the ledger that are in the future to now; or moves all times with a clock that has jumped
/// forward, so that members under way keep the time that they would have had.
pub(crate) fn correct_times(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let now = context.snapshot.now;
    let latest = now.plus(CLOCK_SKEW);
    if context.snapshot.jumped > 0 {
        return Changes::of_ledger(LedgerChange::MoveTimes(context.snapshot.jumped));
    }
    if ledger.has_times_after(latest) {
        Changes::of_ledger(LedgerChange::CorrectTimes { latest, now })
    } else {
        Changes::default()
    }
}
