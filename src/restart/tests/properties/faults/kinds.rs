//! Faults of one kind and another, at random times.

use proptest::prelude::*;

use super::{Fault, faults};

/// Fields of a template, and what they become: images that can be pulled and run, and others; values
/// with which the engine runs, and others; sizes that a Kubernetes node can give, and others.
pub(super) const TEMPLATES: [&str; 27] = [
    "image=a",
    "image=b",
    "image=late",
    "image=ending",
    "image=bad",
    "image=broken",
    "env=b",
    "env=a",
    "variable=b",
    "variable=broken",
    "variable=a",
    "variable=b image=b",
    "memory=a",
    "memory=2Gi",
    "memory=infeasible",
    "memory=low",
    "memory=low image=b",
    "memory=deferred",
    "memory=huge",
    "label=b sidecar=b",
    "sidecar=bad",
    "sidecar=ending",
    "sidecar=unready",
    "sidecar=bad image=b",
    "asked=b",
    "affinity=b",
    "image=a env=a variable=a memory=a label=a sidecar=a asked=a affinity=a",
];

/// Faults in the order of their time.
pub(crate) fn in_order(mut faults: Vec<(u64, Fault)>) -> Vec<(u64, Fault)> {
    faults.sort_by_key(|(at, _)| *at);
    faults
}

/// Faults of a kind, and the first few of any others.
fn beside(
    mut kind: Vec<(u64, Fault)>,
    others: Vec<(u64, Fault)>,
    most: usize,
) -> Vec<(u64, Fault)> {
    kind.extend(others.into_iter().take(most));
    in_order(kind)
}

/// Any fault, and the owner changes its template again and again.
pub(crate) fn templates(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let change = prop_oneof![
        8 => (0..TEMPLATES.len()).prop_map(Fault::Template),
        1 => (0_usize..5).prop_map(Fault::Cordoned),
        1 => (0_usize..5).prop_map(Fault::Uncordoned),
        1 => Just(Fault::DeletionForbidden),
        1 => Just(Fault::DeletionAllowed),
        1 => Just(Fault::ChangesForbidden),
        1 => Just(Fault::ChangesAllowed),
        2 => Just(Fault::LoweringRefused),
        1 => Just(Fault::LoweringTaken),
    ];
    let changes = prop::collection::vec((0..within, change), 1..8);
    (changes, faults(within)).prop_map(|(changes, faults)| beside(changes, faults, 10))
}

/// Any fault, and the configs change again and again, forward and back.
pub(crate) fn configs(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let change = prop_oneof![
        3 => (1_usize..5).prop_map(Fault::AllSourcesBecome),
        1 => (0_usize..5, 1_usize..5).prop_map(|(node, to)| Fault::SourcesBecome(node, to)),
    ];
    let changes = prop::collection::vec((0..within, change), 1..6);
    (changes, faults(within)).prop_map(|(changes, faults)| beside(changes, faults, 8))
}

/// Any fault, while people hold restarts back and let them go again.
pub(crate) fn holds(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let hold = prop_oneof![
        4 => (1_usize..6).prop_map(Fault::WindowsClosed),
        1 => Just(Fault::Pause),
        2 => Just(Fault::Resume),
        1 => Just(Fault::AskOutsideWindows),
        2 => Just(Fault::GateAfter),
        2 => Just(Fault::Checked),
        2 => Just(Fault::AskAgain),
    ];
    let holds = prop::collection::vec((0..within, hold), 1..9);
    (holds, faults(within)).prop_map(|(holds, faults)| beside(holds, faults, 6))
}

/// Any fault, while people ask for restarts that may be an outage, and for others.
pub(crate) fn consents(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let ask = prop_oneof![
        2 => Just(Fault::AskAllowingOutage),
        1 => Just(Fault::AskAgain),
        1 => Just(Fault::Cancel),
        2 => (0_usize..5).prop_map(Fault::KeepStopped),
        1 => (0_usize..5).prop_map(Fault::LetRun),
    ];
    let asks = prop::collection::vec((0..within, ask), 1..6);
    (asks, faults(within)).prop_map(|(asks, faults)| beside(asks, faults, 6))
}

/// Any fault, while the apiserver refuses the patches of some pods.
pub(crate) fn refused_patches(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let refused = prop_oneof![
        4 => (0_usize..5).prop_map(Fault::PatchesRefused),
        1 => Just(Fault::AskAgain),
        1 => Just(Fault::Cancel),
    ];
    let refused = prop::collection::vec((0..within / 2, refused), 2..6);
    (refused, faults(within)).prop_map(|(refused, faults)| beside(refused, faults, 4))
}

/// Any fault, and an engine that reads its state for long after each full stop.
pub(crate) fn full_stops(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let stop = prop_oneof![
        2 => (3_usize..5).prop_map(Fault::AskCoordinated),
        1 => Just(Fault::AllFail),
        1 => Just(Fault::Crash),
    ];
    let stops = prop::collection::vec((0..within, stop), 1..5);
    let seconds = 2_usize..80;
    (seconds, stops, faults(within)).prop_map(|(seconds, stops, faults)| {
        let all = beside(stops, faults, 5);
        std::iter::once((0, Fault::StateReadIn(seconds))).chain(all).collect()
    })
}

/// Engines and copies that fail by themselves, and pauses: nothing that needs a person.
pub(crate) fn failures(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    use Fault::*;
    let fault = prop_oneof![
        4 => (3_usize..6).prop_map(EngineDies),
        4 => (3_usize..6).prop_map(CopyFails),
        1 => (0_usize..6).prop_map(EngineHangs),
        2 => (0_usize..6).prop_map(EngineAnswers),
        1 => Just(Pause),
        2 => Just(Resume),
        1 => Just(Crash),
    ];
    prop::collection::vec((0..within, fault), 4..16).prop_map(in_order)
}
