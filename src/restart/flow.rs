//! The steps of a plan, in their order. Each is a function of the snapshot and of the ledger as the
//! steps before have changed it; what it returns is merged by [`Draft`], which alone changes a
//! ledger.
//!
//! From an annotation to a stop request; the order of the steps themselves is in the tables below:
//!
//! 1. [`requests`]: what people and the spec ask for is accepted into the ledger, once. A SearchCluster that
//!    is being deleted accepts nothing.
//! 2. [`debts`] of earlier steps are paid.
//! 3. Members of a rolling or immediate restart: `advance_member` lets each that holds a slot take
//!    its next step: [`member::stop`], then [`member::start`], then [`member::finish`]; or
//!    [`member::abort`], then [`member::bring_back`]. Then `choose_next` ([`begin`]) gives slots to
//!    those whose turn it is. In a [`coordinated`] restart one of `begin_all`, `stop_all` and
//!    `start_all`, or `advance_member` while all members are turned back.
//! 4. [`keep_stopped`]: nodes that are to be kept stopped.
//! 5. [`finish`]: ends the restart once no member is left, and shows how far it is.
//!
//! While the apiserver does not answer there is no plan: only [`starts_in_ledger`] are sent. While
//! there are [`awaited_starts`], the engine is not waited for.
//!
//! Shared parts of the steps: [`turn`] (the result of a member's turn), [`engine`] (changes on the
//! engine around a stop), [`drain`] (when the stop signal may be sent), [`answers`] (our requests in a
//! manager's status), [`observed`] (facts of the snapshot), [`member_phase`], [`target`] and [`history`].

mod requests;

mod debts;

mod begin;

mod member;

mod coordinated;

mod keep_stopped;

mod finish;

mod answers;
mod drain;
mod engine;
mod history;
mod known_starts;
mod member_phase;
mod observed;
mod recovery_mode;
mod target;
mod times;
mod turn;

pub use known_starts::{awaited_starts, start_is_due, starts_in_ledger};
pub(super) use member::update::{planned_update, set_back_next};
pub(super) use member_phase::phase_of;
pub use observed::outside_windows;
pub(super) use requests::kept_phase::why_kept;
pub(super) use requests::update::updates_to_come;

use super::changes::Changes;
use super::context::Context;
use super::draft::{Draft, PlanStep, Run};
use super::{LATE_REQUEST_WINDOW, Ledger, MemberStep, Restart, Strategy, ended_recently};
use coordinated::{begin_all::begin_all, start_all::start_all, stop_all::stop_all, supersede};
use requests::{accept, cancel, configs, drift, old_phases, pod_phases, policy_names, update};

/// All steps for this snapshot, in their order.
pub(super) fn decide<'c, 'a>(context: &'c Context<'a>) -> Draft<'c, 'a> {
    let mut draft = Draft::new(context);
    each_step(&mut draft, |draft, step| draft.run(step));
    draft
}

/// The steps in their order, to be called one by one: which steps there are for the members depends
/// on what the steps before have changed.
pub(super) fn each_step<'c, 'a>(
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

const ACCEPT: [PlanStep; 16] = [
    once("correct_times", times::correct_times),
    once("remember_configs", configs::remember_configs),
    once("remember_ignored_changes", configs::remember_ignored_changes),
    once("adopt_phases", old_phases::adopt_phases),
    once("claim_phase", accept::claim_phase),
    once("accept_request", accept::accept_request),
    once("accept_cancel", cancel::accept_cancel),
    once("supersede", supersede::supersede),
    once("report_queued", accept::report_queued),
    once("request_for_update", update::request_for_update),
    once("request_for_drift", drift::request_for_drift),
    once("open_queued", accept::open_queued),
    once("report_unknown_names", policy_names::report_unknown_names),
    once("apply_people_changes", pod_phases::apply_people_changes),
    once("end_at_deadline", finish::end_at_deadline),
    once("end_one_by_one", configs::end_one_by_one),
];

const ACCEPT_NOTHING: [PlanStep; 3] = [
    once("correct_times", times::correct_times),
    once("end_for_deletion", accept::end_for_deletion),
    once("report_unknown_names", policy_names::report_unknown_names),
];

const PAY_DEBTS: [PlanStep; 5] = [
    once("pay_starts", debts::pay_starts),
    once("pay_allocation", debts::pay_allocation),
    once("pay_records", debts::pay_records),
    once("delete_late_records", debts::delete_late_records),
    once("pay_exclusion", engine::voting::pay),
];

const ROLLING: [PlanStep; 2] =
    [ADVANCE_MEMBER, once("choose_next", begin::choose_next::choose_next)];

const COORDINATED_BACK: [PlanStep; 1] = [ADVANCE_MEMBER];

const COORDINATED_BEGIN: [PlanStep; 1] = [once("begin_all", begin_all)];

const COORDINATED_STOP: [PlanStep; 1] = [once("stop_all", stop_all)];

const COORDINATED_START: [PlanStep; 1] = [once("start_all", start_all)];

const KEEP_STOPPED: [PlanStep; 2] = [
    once("forget_replaced", keep_stopped::forget_replaced),
    PlanStep { name: "keep_stopped", run: Run::EachPod(keep_stopped::keep_stopped) },
];

const FINISH: [PlanStep; 6] = [
    once("finish_restart", finish::finish_restart),
    once("report_progress", finish::progress::report_progress),
    once("show_phases", finish::show_phases::show_phases),
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
pub(super) fn names() -> impl Iterator<Item = &'static str> {
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
