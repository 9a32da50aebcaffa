//! What `stayput` needs of an apiserver, tested on the real one and on the stand-in.
//!
//! Each case makes its own namespace, so that cases can run in parallel and on a server that is
//! also used otherwise. Their client must not retry by itself (`default_retry: false`), because the
//! cases check refusals. [`watches::forgotten_versions_are_expired`] needs control over the server,
//! so it is not in the list.

#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

pub mod deletion;
pub mod discovery;
pub mod events;
pub mod kinds;
pub mod lists;
pub mod objects;
pub mod patches;
pub mod schema;
pub mod status;
pub mod tokens;
pub mod versions;
pub mod watches;
mod world;

/// Calls `$with!` with the path of every case.
#[macro_export]
macro_rules! every_case {
    ($with:ident) => {
        $with! {
            deletion::an_object_goes_and_the_answer_says_which_it_was,
            deletion::preconditions_that_do_not_hold_refuse_a_deletion,
            deletion::a_finalizer_keeps_an_object_until_it_is_taken_off,
            deletion::an_object_that_is_going_takes_no_new_finalizers,
            deletion::a_bound_pod_is_given_time_and_another_is_gone_at_once,
            deletion::a_dry_run_is_said_in_the_body_if_there_is_one,
            deletion::a_collection_is_deleted_by_selector,
            discovery::groups_versions_and_kinds_are_listed,
            discovery::an_unknown_path_is_a_status_in_groups_that_are_built_in,
            discovery::a_new_kind_is_established_and_listed,
            events::an_event_of_the_new_api_is_seen_by_the_old_one,
            events::an_incomplete_event_is_refused,
            events::events_are_selected_by_what_they_are_about,
            kinds::a_secret_takes_plain_text_and_shows_base64,
            kinds::an_immutable_config_map_stays,
            kinds::a_pod_gets_defaults_and_keeps_its_spec,
            kinds::a_pod_gets_another_size_only_through_resize,
            kinds::a_stateful_set_counts_its_generations,
            kinds::a_controller_revision_keeps_fields_that_nobody_knows,
            kinds::an_endpoint_slice_says_which_pods_are_ready,
            kinds::a_lease_is_taken_by_one_of_two,
            lists::items_come_in_order_with_a_version,
            lists::labels_select,
            lists::fields_select,
            lists::pages_are_of_one_version,
            lists::versions_that_are_gone_or_not_there_yet_are_refused,
            lists::options_have_to_go_together,
            lists::metadata_alone_can_be_asked_for,
            objects::the_server_fills_in_the_metadata,
            objects::a_name_is_taken_once,
            objects::what_does_not_exist_is_not_found,
            objects::a_name_is_made_up_from_a_prefix,
            objects::names_and_namespaces_have_to_agree_with_the_path,
            objects::labels_have_a_grammar,
            objects::bad_bodies_are_told_apart,
            objects::a_dry_run_leaves_nothing,
            patches::a_merge_patch_sets_and_removes,
            patches::a_json_patch_tests_and_replaces,
            patches::a_json_patch_that_does_not_fit_changes_nothing,
            patches::a_json_patch_on_a_missing_key_is_lenient,
            patches::a_patch_of_another_format_is_refused,
            patches::a_strategic_patch_merges_maps,
            patches::a_patch_with_a_stale_version_conflicts,
            patches::a_json_patch_changes_items_of_lists_of_the_status,
            patches::a_forced_apply_creates_and_changes,
            schema::defaults_are_filled_in_and_unknown_fields_dropped,
            schema::another_kind_is_refused,
            schema::wrong_values_are_refused_by_field,
            schema::unknown_fields_are_refused_when_asked_for,
            status::the_main_resource_ignores_the_status,
            status::the_status_subresource_ignores_the_rest,
            status::both_share_one_version,
            status::a_pod_takes_labels_through_its_status,
            tokens::a_token_names_account_audience_and_pod,
            tokens::a_token_is_verified_with_the_published_key,
            tokens::a_token_for_what_is_not_there_is_refused,
            versions::every_write_gets_a_higher_version,
            versions::a_write_that_changes_nothing_is_none,
            versions::a_stale_put_conflicts,
            versions::a_put_without_a_version_is_a_matter_of_the_kind,
            versions::a_version_that_is_no_number_is_an_error,
            versions::another_uid_conflicts,
            watches::changes_arrive_in_order_from_a_version_on,
            watches::a_watch_without_a_version_begins_with_what_exists,
            watches::an_object_enters_and_leaves_a_selection,
            watches::bookmarks_come_before_the_end,
            watches::initial_events_end_with_a_bookmark,
            watches::metadata_alone_can_be_watched,
            watches::the_watcher_of_kube_follows,
        }
    };
}
