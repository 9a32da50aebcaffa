//! Scripts for the simulated cluster, and the page of text that each must produce. `UPDATE_DOCS=1
//! cargo test -p stayput-restart scenario` writes the pages again.

mod command;
mod operators;
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
    allocation_of_an_earlier_restart // proves RESTART-118
    allow_outage // proves UPDATE-39
    allow_outage_foreign_exclusion // proves UPDATE-39
    allow_outage_kept_stopped // proves UPDATE-39
    another_cluster_answers
    booting_is_not_failed
    cancel // proves RESTART-129
    control_plane_lost // proves RESTART-30
    control_plane_lost_coordinated // proves RESTART-30
    control_plane_lost_last_good // proves RESTART-30
    control_plane_lost_other_config // proves RESTART-30
    controller_crash
    config_reverted // proves UPDATE-24
    config_reverted_for_all // proves UPDATE-24
    coordinated_allocation_of_another // proves RESTART-58
    coordinated_cancelled_pod_on_another // proves RESTART-131
    coordinated_cancelled_pod_replaced // proves RESTART-131
    coordinated_cannot_begin // proves RESTART-138
    coordinated_config_not_mounted // proves RESTART-58
    coordinated_back_late // proves RESTART-61
    coordinated_engine_away // proves RESTART-58
    coordinated_engine_away_after_start // proves RESTART-58
    coordinated_frozen_checksums
    coordinated_never_ready // proves RESTART-54
    coordinated_one_fails // proves RESTART-53
    coordinated_one_never_ready // proves RESTART-54
    coordinated_one_not_listed // proves RESTART-54
    coordinated_without_master // proves RESTART-59
    coordinated_without_master_refused // proves RESTART-59
    coordinated_paused_before_stop // proves RESTART-93
    coordinated_joined_while_away // proves RESTART-61
    coordinated_pod_missed_late // proves RESTART-61, RESTART-95
    coordinated_pod_not_listed
    coordinated_pod_replaced
    coordinated_turned_back_early
    copies_lost_in_a_slot // proves RESTART-93
    copy_fails_in_a_slot // proves RESTART-93
    deleted_late_allocation // proves RESTART-107
    deleted_patches_refused // proves RESTART-57
    deleted_with_its_pods // proves RESTART-107
    another_announces_a_restart // proves RESTART-45
    another_announces_at_once // proves RESTART-45
    one_id_in_two_searchclusters // proves RESTART-45
    deadline_after_absence // proves RESTART-26
    limited_in_the_slot // proves RESTART-47
    not_before_deadline // proves RESTART-26
    replaced_while_engine_away // proves RESTART-50
    coordinated_writes_refused // proves RESTART-56
    done_and_not_listed
    drain // proves STOP-19
    drain_ahead // proves STOP-22
    drift
    drift_left_out // proves UPDATE-65
    drift_stuck // proves RESTART-78
    eck_deletes_records // proves RESTART-124
    engine_hangs // proves RESTART-15
    engine_hangs_in_its_slot // proves RESTART-15
    engine_will_not_start // proves RESTART-29
    finalizer_leaves // proves RESTART-107
    gives_back_in_vain // proves RESTART-93
    gate // proves UPDATE-41
    gate_after // proves UPDATE-52
    gate_after_superseded // proves UPDATE-52
    gate_coordinated // proves UPDATE-41
    foreign_controller
    foreign_setting_beside // proves RESTART-118
    frozen_before_stop // proves RESTART-95
    frozen_manager // proves RESTART-43, RESTART-56
    frozen_manager_coordinated // proves RESTART-43
    half_of_coordinated // proves RESTART-61
    half_of_coordinated_forward
    half_of_coordinated_pod_gone // proves RESTART-53, RESTART-106, RESTART-147
    half_of_coordinated_replaced_silent // proves RESTART-96
    half_of_coordinated_silent // proves RESTART-96, RESTART-97
    half_of_coordinated_silent_alike // proves RESTART-98
    half_of_coordinated_silent_by_hand // proves RESTART-98
    half_of_coordinated_silent_listed // proves RESTART-98
    half_of_coordinated_silent_listed_by_hand // proves RESTART-98
    half_of_coordinated_silent_moved // proves RESTART-98
    half_of_coordinated_silent_put_back // proves RESTART-98
    half_of_coordinated_silent_unknown // proves RESTART-98
    half_of_coordinated_two_silent // proves RESTART-98
    half_of_coordinated_two_silent_known // proves RESTART-98
    half_of_them // proves RULE-13
    health_lost_before_stop // proves RESTART-152
    immediate_one_node
    kept_stopped // proves RESTART-129, UPDATE-78
    kept_stopped_before_its_turn // proves RESTART-137
    kept_stopped_in_its_turn // proves RESTART-137
    kept_stopped_other_cluster_name // proves UPDATE-78
    kept_stopped_then_coordinated // proves UPDATE-79
    kept_stopped_while_paused
    late_allocation // proves RESTART-118
    manager_not_durable
    needs_coordinated // proves UPDATE-72
    needs_coordinated_after_stop // proves UPDATE-72
    needs_coordinated_after_stop_of_two // proves UPDATE-74
    needs_coordinated_before_stop // proves UPDATE-72
    needs_coordinated_in_parts // proves UPDATE-72
    needs_coordinated_midway // proves UPDATE-72
    needs_coordinated_unknown // proves UPDATE-72
    needs_coordinated_unknown_midway // proves UPDATE-72
    needs_coordinated_unlisted // proves UPDATE-72
    multi_az
    multi_az_all_masters_failed
    multi_az_even_masters
    multi_az_insufficient_quorum
    never_started_image // proves UPDATE-7
    never_started_not_allowed // proves UPDATE-7
    never_started_size // proves UPDATE-7
    multi_az_pools_per_zone
    no_rollback
    node_down // proves RESTART-101, RESTART-111
    node_leaves
    normal_progress // proves RESTART-115
    not_before // proves UPDATE-40
    one_node
    part_of_a_set_failed
    patches_refused // proves RESTART-57
    pause // proves RESTART-129
    paused_before_stop // proves RESTART-93
    opensearch_operator // proves RESTART-126
    owed_start_pod_not_listed // proves RESTART-147
    persons_stop // proves RESTART-129
    persons_stop_before_a_late_stop // proves STOP-24, RESTART-129
    phase_applied_again // proves RESTART-99
    phase_applied_again_to_a_pod // proves RESTART-99
    owner_replaces // proves RESTART-151, RESTART-153
    phase_beside_a_zone // proves RESTART-100
    phase_beside_an_outage // proves RESTART-100
    phase_beside_own_restart // proves RESTART-100
    phase_edited_by_hand // proves RESTART-129
    phase_taken_from_all
    phase_written_again // proves RESTART-99
    pod_being_deleted // proves RULE-3
    pod_not_listed
    pod_replaced // proves RESTART-131
    pod_replaced_on_old_config // proves RESTART-131
    pod_replaced_on_old_config_without_records // proves RESTART-131
    queue_of_one // proves RESTART-50, RESTART-129
    queued_before_our_own // proves RESTART-50
    marker_is_gone // proves RESTART-46
    operator_disables_rules // proves RESTART-166
    operator_kept_stopped // proves RESTART-167
    operator_kept_stopped_second // proves RESTART-167
    operator_phase // proves RESTART-165
    operator_replaces // proves RESTART-151
    operator_replaces_before // proves RESTART-152
    operator_replaces_meanwhile // proves RESTART-167
    operator_template // proves UPDATE-105
    operator_template_deleted // proves UPDATE-107
    operator_template_edited // proves UPDATE-105
    operator_template_given_up // proves UPDATE-106
    operator_template_label_undone // proves UPDATE-105
    operator_template_off // proves UPDATE-107
    operator_template_paused // proves UPDATE-104
    operator_template_opensearch // proves UPDATE-108
    queued_for_the_last_node // proves RESTART-144
    record_deleted // proves RESTART-125
    role_of_a_node_down // proves RULE-15
    rolling_config_change // proves RESTART-1
    running_snapshot // proves UPDATE-38
    running_snapshot_hangs // proves UPDATE-38
    searchcluster_deleted // proves RESTART-107
    searchable_snapshots // proves RULE-5
    secret_never_arrives // proves RESTART-56
    selector_matches_nothing // proves RESTART-108
    shutdown_records // proves RESTART-123
    shutdown_records_of_an_update // proves RESTART-123
    sidecar_crashes // proves RULE-9
    silent_before_stop_copy_fails // proves RESTART-93
    silent_before_stop_paused // proves RESTART-93
    silent_one_of_two // proves RESTART-95
    silent_with_its_engine // proves RESTART-95
    single_master // proves RULE-12
    skip_rule // proves UPDATE-37
    source_absent
    sources_not_found // proves UPDATE-66
    state_not_recovered // proves RESTART-149
    stop_never_ends // proves RESTART-56
    stopped_again_before_it_was_started // proves RESTART-129
    stopped_again_while_brought_back // proves RESTART-129
    superseded_forward // proves RESTART-61
    superseded_forward_crash
    superseded_forward_left_out // proves RESTART-96
    superseded_forward_silent // proves RESTART-96
    superseded_person_starts // proves RESTART-26
    superseded_resumed // proves RESTART-26
    superseded_refused
    superseded_twice
    trigger_on_cluster
    two_at_a_time // proves RULE-13
    two_at_a_time_cancelled
    two_at_a_time_one_fails
    two_at_a_time_paused
    two_at_a_time_pod_replaced
    two_masters // proves RULE-12
    two_masters_by_hand
    two_masters_crash
    two_masters_foreign_exclusion // proves RULE-12
    two_masters_late_exclusion
    two_masters_pod_replaced
    two_masters_vote_stays
    very_late_allocation // proves RESTART-118
    unreplicated_index // proves RULE-5
    waiting_pod_not_listed // proves RESTART-106
    whole_set_failed
    whole_set_failed_again
    whole_set_failed_engine_unreachable // proves RULE-14
    whole_set_failed_while_something_is_owed
    whole_set_failed_wrong_cluster
    zone_as_a_whole // proves RULE-14
    zone_blocked_by_shard // proves RULE-14
    zone_kept_stopped // proves RESTART-137
    zone_manager_silent
    zone_owner_replaces
    zone_pod_gone
    zone_that_is_none
    zone_with_a_whole_tier
    zone_with_all_masters
    zone_without_zones
    update_back_off // proves RESTART-72
    update_bad_image // proves RESTART-29, RESTART-65, RESTART-70
    update_broken_image // proves RESTART-29, RESTART-70
    update_crashes // proves RESTART-62
    update_engine_crashes // proves RESTART-29
    update_engine_dies_before_stop // proves RESTART-90
    update_variable // proves UPDATE-112
    update_variable_broken // proves UPDATE-113
    update_variable_late // proves UPDATE-112
    update_variable_put_back // proves UPDATE-112
    update_env // proves RESTART-62
    update_image // proves RESTART-62
    update_kept_stopped // proves RESTART-81
    update_kept_stopped_late // proves RESTART-82
    update_kept_stopped_without_vote // proves RESTART-134
    update_nobody_looks // proves RESTART-78
    update_not_deletable // proves UPDATE-8
    update_needs_coordinated // proves UPDATE-76
    update_needs_coordinated_alone // proves UPDATE-76
    update_of_a_person // proves RESTART-77
    update_owed // proves RESTART-44
    maintenance_windows // proves UPDATE-53
    maintenance_windows_coordinated // proves UPDATE-53
    maintenance_windows_own // proves UPDATE-53
    update_pending // proves RESTART-70, RESTART-75
    update_image_changed // proves RESTART-66
    update_image_changed_unseen // proves RESTART-66
    update_registry_away // proves RESTART-65
    update_size_no_room // proves UPDATE-6
    update_size_deferred // proves UPDATE-6
    update_size_stays // proves RESTART-71
    update_size_stays_owed // proves RESTART-71
    update_size_and_image_stay // proves RESTART-71
    update_image_stays // proves RESTART-71
    update_image_refused_on_the_way_back // proves RESTART-71
    update_env_without_secret // proves RESTART-65
    update_relabel // proves RESTART-62, UPDATE-33
    update_sidecar // proves RESTART-77
    update_sidecar_bad_image // proves RESTART-77
    update_sidecar_given_up_late
    update_sidecar_left_bad // proves RESTART-77
    update_sidecar_not_ready // proves RESTART-77
    update_deletes_data // proves RULE-6
    update_deletes_failed_data // proves RULE-6
    update_refused // proves UPDATE-6
    update_replace // proves RESTART-62
    update_content_put_back // proves UPDATE-114
    update_put_back // proves UPDATE-114
    update_reverted // proves RESTART-76
    update_size // proves RESTART-62
    update_size_heap // proves UPDATE-34
    update_size_refused // proves UPDATE-6
    update_size_infeasible // proves RESTART-29, RESTART-70
    update_size_lower // proves RESTART-73
    update_size_and_image // proves RESTART-62
    update_size_and_variable // proves RESTART-62
    update_stopped_by_hand // proves RESTART-80
    update_stuck // proves RESTART-78
    update_without_its_claim // proves UPDATE-10
    update_would_not_fit // proves RESTART-70, UPDATE-9
}
