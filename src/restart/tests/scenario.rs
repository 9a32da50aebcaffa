//! Scripts for the simulated cluster, and the page of text that each must produce. `UPDATE_DOCS=1
//! cargo test -p stayput-restart scenario` writes the pages again.

mod command;
mod templates;
mod wait;

use super::driver::Driver;
use super::world::World;
use crate::{Drain, Policy, Saved, Snapshot};

/// Carries out one line of a script.
pub(crate) fn play_line(driver: &mut Driver, line: &str) {
    driver.page.script(line);
    command::carry_out(driver, line);
    driver.laws.check(&driver.world, &driver.policy);
}

/// Plays a script. Returns the page, and the faults.
fn play(script: &str) -> (String, Vec<String>) {
    let (mut page, mut driver) = run(script, None);
    let wrong = driver.verdict();
    let now = driver.world.now;
    let figures = format!(
        "{} ledger writes, {} pod patches, {} plans{}",
        driver.ledger_writes,
        driver.patches,
        driver.passes,
        if driver.laws.was_red { ", red for a time" } else { "" }
    );
    driver.page.line(now, "end", &figures);
    page.push_str(driver.page.text());
    (page, wrong)
}

/// Runs a script to its end. Returns its remarks, and the driver.
fn run(script: &str, seen: Option<Vec<Saved>>) -> (String, Driver) {
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut page = String::new();
    let mut driver = None;
    for line in lines.by_ref() {
        if let Some(remark) = line.strip_prefix('#') {
            page.push_str(&format!("#{remark}\n"));
            continue;
        }
        let nodes = line.strip_prefix("cluster ").unwrap_or_else(|| {
            panic!("a script begins with its cluster, not with {line:?}");
        });
        let nodes = command::nodes(nodes);
        let nodes: Vec<(&str, &str)> =
            nodes.iter().map(|(name, roles)| (name.as_str(), roles.as_str())).collect();
        // With one line less for each stop; `policy drain auto` is the default outside.
        let policy = Policy { drain: Drain::Fixed(Drain::LONGEST), ..Policy::default() };
        let mut begun = Driver::new(World::new(&nodes), policy);
        begun.page.script(line);
        driver = Some(begun);
        break;
    }
    let mut driver = driver.expect("a script has a cluster");
    driver.seen = seen;
    for line in lines.filter(|line| !line.starts_with('#')) {
        play_line(&mut driver, line);
    }
    (page, driver)
}

/// Name of each scenario, with what its plans were made from.
pub(super) fn snapshots_of_each() -> impl Iterator<Item = (&'static str, Vec<Saved>)> {
    ALL.iter().map(|(name, script)| {
        let (_, driver) = run(script, Some(Vec::new()));
        (*name, driver.seen.unwrap_or_default())
    })
}

/// What is seen after a script, and the policy then. It begins with the nodes of its cluster.
pub(super) fn moment(script: &[&str]) -> (Snapshot, Policy) {
    let nodes = command::nodes(script[0]);
    let nodes: Vec<(&str, &str)> =
        nodes.iter().map(|(name, roles)| (name.as_str(), roles.as_str())).collect();
    let mut driver = Driver::new(World::new(&nodes), Policy::default());
    for line in &script[1..] {
        play_line(&mut driver, line);
    }
    let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
    (snapshot, driver.policy)
}

#[allow(clippy::disallowed_methods, reason = "a test reads and writes its golden pages")]
fn compare(name: &str, script: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/scenarios/{name}.expected"));
    let (page, wrong) = play(script);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the scenarios can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wrong.is_empty(), "{name}:\n{}\n{page}", wrong.join("\n"));
    let differs = page.lines().zip(expected.lines()).position(|(now, then)| now != then);
    assert!(
        page == expected,
        "{name}.expected differs from line {:?} on; write the pages again with \
         `UPDATE_DOCS=1 cargo test -p stayput-restart scenario` and read the difference\n{page}",
        differs.map(|at| at + 1)
    );
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        /// Name and script of each scenario.
        const ALL: &[(&str, &str)] =
            &[$((stringify!($name), include_str!(concat!("scenarios/", stringify!($name), ".txt")))),*];

        $(
            #[test]
            fn $name() {
                let name = stringify!($name);
                compare(name, include_str!(concat!("scenarios/", stringify!($name), ".txt")));
            }
        )*
    };
}

scenarios! {
    aborted_while_stopping
    allocation_of_an_earlier_restart
    allow_outage
    allow_outage_foreign_exclusion
    allow_outage_kept_stopped
    another_cluster_answers
    booting_is_not_failed
    cancel
    control_plane_lost
    control_plane_lost_coordinated
    control_plane_lost_last_good
    control_plane_lost_other_config
    controller_crash
    config_reverted
    config_reverted_for_all
    coordinated_allocation_of_another
    coordinated_cancelled_pod_on_another
    coordinated_cancelled_pod_replaced
    coordinated_cannot_begin
    coordinated_config_not_mounted
    coordinated_back_late
    coordinated_engine_away
    coordinated_engine_away_after_start
    coordinated_frozen_checksums
    coordinated_never_ready
    coordinated_one_fails
    coordinated_one_never_ready
    coordinated_one_not_listed
    coordinated_without_master
    coordinated_without_master_refused
    coordinated_paused_before_stop
    coordinated_joined_while_away
    coordinated_pod_missed_late
    coordinated_pod_not_listed
    coordinated_pod_replaced
    coordinated_turned_back_early
    copies_lost_in_a_slot
    copy_fails_in_a_slot
    deleted_late_allocation
    deleted_patches_refused
    deleted_with_its_pods
    another_announces_a_restart
    another_announces_at_once
    one_id_in_two_searchclusters
    deadline_after_absence
    limited_in_the_slot
    not_before_deadline
    replaced_while_engine_away
    coordinated_writes_refused
    done_and_not_listed
    drain
    drain_ahead
    drift
    drift_left_out
    drift_stuck
    eck_deletes_records
    engine_hangs
    engine_hangs_in_its_slot
    engine_will_not_start
    finalizer_leaves
    gives_back_in_vain
    gate
    gate_after
    gate_after_superseded
    gate_coordinated
    foreign_controller
    foreign_setting_beside
    frozen_before_stop
    frozen_manager
    frozen_manager_coordinated
    half_of_coordinated
    half_of_coordinated_forward
    half_of_coordinated_pod_gone
    half_of_coordinated_replaced_silent
    half_of_coordinated_silent
    half_of_coordinated_silent_alike
    half_of_coordinated_silent_by_hand
    half_of_coordinated_silent_listed
    half_of_coordinated_silent_listed_by_hand
    half_of_coordinated_silent_moved
    half_of_coordinated_silent_put_back
    half_of_coordinated_silent_unknown
    half_of_coordinated_two_silent
    half_of_coordinated_two_silent_known
    half_of_them
    health_lost_before_stop
    immediate_one_node
    kept_stopped
    kept_stopped_before_its_turn
    kept_stopped_in_its_turn
    kept_stopped_other_cluster_name
    kept_stopped_then_coordinated
    kept_stopped_while_paused
    late_allocation
    manager_not_durable
    needs_coordinated
    needs_coordinated_after_stop
    needs_coordinated_after_stop_of_two
    needs_coordinated_before_stop
    needs_coordinated_in_parts
    needs_coordinated_midway
    needs_coordinated_unknown
    needs_coordinated_unknown_midway
    needs_coordinated_unlisted
    multi_az
    multi_az_all_masters_failed
    multi_az_even_masters
    multi_az_insufficient_quorum
    never_started_image
    never_started_not_allowed
    never_started_size
    multi_az_pools_per_zone
    no_rollback
    node_down
    node_leaves
    normal_progress
    not_before
    one_node
    part_of_a_set_failed
    patches_refused
    pause
    paused_before_stop
    opensearch_operator
    owed_start_pod_not_listed
    persons_stop
    persons_stop_before_a_late_stop
    phase_applied_again
    phase_applied_again_to_a_pod
    owner_replaces
    phase_beside_a_zone
    phase_beside_an_outage
    phase_beside_own_restart
    phase_edited_by_hand
    phase_taken_from_all
    phase_written_again
    pod_being_deleted
    pod_not_listed
    pod_replaced
    pod_replaced_on_old_config
    pod_replaced_on_old_config_without_records
    queue_of_one
    queued_before_our_own
    marker_is_gone
    operator_replaces
    operator_replaces_before
    queued_for_the_last_node
    record_deleted
    role_of_a_node_down
    rolling_config_change
    running_snapshot
    running_snapshot_hangs
    searchcluster_deleted
    searchable_snapshots
    secret_never_arrives
    selector_matches_nothing
    shutdown_records
    shutdown_records_of_an_update
    sidecar_crashes
    silent_before_stop_copy_fails
    silent_before_stop_paused
    silent_one_of_two
    silent_with_its_engine
    single_master
    skip_rule
    source_absent
    sources_not_found
    state_not_recovered
    stop_never_ends
    stopped_again_before_it_was_started
    stopped_again_while_brought_back
    superseded_forward
    superseded_forward_crash
    superseded_forward_left_out
    superseded_forward_silent
    superseded_person_starts
    superseded_resumed
    superseded_refused
    superseded_twice
    trigger_on_cluster
    two_at_a_time
    two_at_a_time_cancelled
    two_at_a_time_one_fails
    two_at_a_time_paused
    two_at_a_time_pod_replaced
    two_masters
    two_masters_by_hand
    two_masters_crash
    two_masters_foreign_exclusion
    two_masters_late_exclusion
    two_masters_pod_replaced
    two_masters_vote_stays
    very_late_allocation
    unreplicated_index
    waiting_pod_not_listed
    whole_set_failed
    whole_set_failed_again
    whole_set_failed_engine_unreachable
    whole_set_failed_while_something_is_owed
    whole_set_failed_wrong_cluster
    zone_as_a_whole
    zone_blocked_by_shard
    zone_kept_stopped
    zone_manager_silent
    zone_owner_replaces
    zone_pod_gone
    zone_that_is_none
    zone_with_a_whole_tier
    zone_with_all_masters
    zone_without_zones
    update_back_off
    update_bad_image
    update_broken_image
    update_crashes
    update_engine_crashes
    update_engine_dies_before_stop
    update_env
    update_image
    update_kept_stopped
    update_kept_stopped_late
    update_kept_stopped_without_vote
    update_nobody_looks
    update_not_deletable
    update_needs_coordinated
    update_needs_coordinated_alone
    update_of_a_person
    update_owed
    maintenance_windows
    maintenance_windows_coordinated
    maintenance_windows_own
    update_pending
    update_image_changed
    update_image_changed_unseen
    update_registry_away
    update_size_no_room
    update_size_deferred
    update_size_stays
    update_size_stays_owed
    update_size_and_image_stay
    update_image_stays
    update_image_refused_on_the_way_back
    update_env_without_secret
    update_relabel
    update_sidecar
    update_sidecar_bad_image
    update_sidecar_given_up_late
    update_sidecar_left_bad
    update_sidecar_not_ready
    update_deletes_data
    update_deletes_failed_data
    update_refused
    update_replace
    update_reverted
    update_size
    update_size_heap
    update_size_refused
    update_size_infeasible
    update_size_lower
    update_size_and_image
    update_size_and_variable
    update_stopped_by_hand
    update_stuck
    update_without_its_claim
    update_would_not_fit
}
