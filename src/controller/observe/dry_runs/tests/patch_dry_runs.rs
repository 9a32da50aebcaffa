//! What the apiserver is asked before a node is stopped for another image or size, with a stand-in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use stayput_restart::{self as restart, Change, Ledger, PodPatch, PodUpdate, Policy, UpdateStep};
use stayput_standin::apiserver::{ApiServer, Fault, How};
use tokio::time::Instant;

use crate::apiserver::Apiserver;
use crate::metrics::Metrics;
use crate::observe::dry_runs::PatchDryRuns;
use crate::observe::snapshot::Ages;
use crate::observe::snapshot::pod as seen;
use crate::pods::{PodFacts, Reading};

const DENIED: &str = "admission webhook \"images.example\" denied the request: not signed";

struct Fixture {
    server: ApiServer,
    api: Apiserver,
    pods: Vec<Arc<PodFacts>>,
    /// How long the apiserver is asked.
    window: Duration,
    /// Pods may be replaced.
    replaces: bool,
}

impl Fixture {
    async fn new() -> Self {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let pods: Api<Pod> = Api::namespaced(server.client(), "default");
        let mut all = Vec::new();
        for name in ["logs-0", "logs-1"] {
            let resources = json!({"limits": {"memory": "1Gi"}});
            let container = json!({"name": "search", "image": "a", "resources": resources});
            let pod: Value =
                json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
            let pod = serde_json::from_value(pod).expect("a pod");
            let made = pods.create(&PostParams::default(), &pod).await.expect("it is created");
            let reading = Reading { updates: true, ..Reading::default() };
            all.push(Arc::new(PodFacts::of(&made, &reading).expect("its facts")));
        }
        let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
        Self { server, api, pods: all, window: Duration::from_secs(60), replaces: false }
    }

    /// What is written into each pod; those of `turns` are under way.
    async fn ask(
        &self,
        dry_runs: &mut PatchDryRuns,
        step: UpdateStep,
        turns: &[usize],
    ) -> Vec<restart::Pod> {
        let change = |seen: &str, wanted: &str| Change {
            seen: Some(seen.to_owned()),
            wanted: Some(wanted.to_owned()),
        };
        let images = BTreeMap::from([("search".to_owned(), change("a", "b"))]);
        let [small, large] =
            ["1Gi", "2Gi"].map(|size| json!({"limits": {"memory": size}}).to_string());
        let resources = BTreeMap::from([("search".to_owned(), change(&small, &large))]);
        let patch = match step {
            UpdateStep::Resize => PodPatch { resources, ..PodPatch::default() },
            _ => PodPatch { images, ..PodPatch::default() },
        };
        let update = PodUpdate {
            from: "logs-1".into(),
            to: "logs-2".into(),
            step,
            because: Vec::new(),
            new_container: false,
            data_elsewhere: false,
            settings: None,
            patch,
        };
        let mut all: Vec<restart::Pod> = self.pods.iter().map(|facts| seen(facts)).collect();
        all.iter_mut().for_each(|pod| pod.update = Ok(Some(update.clone())));
        let mut policy = Policy { update: BTreeSet::from([step]), ..Policy::default() };
        policy.update.extend(self.replaces.then_some(UpdateStep::Replace));
        for (facts, pod) in self.pods.iter().zip(&mut all) {
            dry_runs.replace_refused(&policy, facts, pod);
        }
        let ledger = Ledger::default();
        let turns: BTreeSet<String> = turns.iter().map(|at| all[*at].uid.clone()).collect();
        let ages = Ages::of(&ledger, &turns, true, all.len());
        let both: Vec<_> = self.pods.iter().zip(&all).collect();
        let end = Instant::now() + self.window;
        dry_runs.read(&self.api, &policy, &both, &ages, end).await;
        all.iter_mut().for_each(|pod| dry_runs.write_into(pod));
        all
    }

    /// Why each pod would not be changed.
    async fn why_not(
        &self,
        dry_runs: &mut PatchDryRuns,
        step: UpdateStep,
        turns: &[usize],
    ) -> Vec<Option<String>> {
        self.ask(dry_runs, step, turns).await.into_iter().map(|pod| pod.unchangeable).collect()
    }

    fn patches(&self) -> u64 {
        self.server.counts().matching(|asked| asked.verb == "patch")
    }
}

#[tokio::test] // proves UPDATE-6
async fn an_image_that_admission_refuses_is_told_in_its_words_and_nothing_is_changed() {
    let fixture = Fixture::new().await;
    let step = UpdateStep::Container;
    assert_eq!(fixture.why_not(&mut PatchDryRuns::default(), step, &[]).await, [None, None]);
    assert_eq!(fixture.patches(), 1, "one answers for both");
    fixture.server.inject(Fault::new(How::Deny(403, DENIED)).verb("patch").times(u32::MAX));
    for why in fixture.why_not(&mut PatchDryRuns::default(), step, &[]).await {
        let why = why.expect("it is refused");
        assert!(why.contains(DENIED) && !why.contains("roles"), "{why}");
    }
    let pods: Api<Pod> = Api::namespaced(fixture.server.client(), "default");
    let pod = pods.get("logs-0").await.expect("it is there");
    assert_eq!(pod.spec.expect("a spec").containers[0].image.as_deref(), Some("a"));
}

#[tokio::test] // proves UPDATE-6
async fn a_missing_role_is_told_from_a_refusal_of_admission() {
    let fixture = Fixture::new().await;
    fixture.server.inject(Fault::new(How::Refuse(403)).verb("patch"));
    let all = fixture.why_not(&mut PatchDryRuns::default(), UpdateStep::Container, &[]).await;
    let why = all[0].clone().expect("it is refused");
    assert!(why.contains("give the reconciler's service account the roles of deploy/"), "{why}");
}

#[tokio::test] // proves UPDATE-6
async fn a_pod_that_is_under_way_is_asked_for_at_each_look_and_the_others_are_not() {
    let fixture = Fixture::new().await;
    let (mut dry_runs, step) = (PatchDryRuns::default(), UpdateStep::Resize);
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[]).await, [None, None]);
    let quota = "pods \"logs-1\" is forbidden: exceeded quota: search";
    fixture.server.inject(Fault::new(How::Deny(403, quota)).verb("patch").times(u32::MAX));
    assert_eq!(
        fixture.why_not(&mut dry_runs, step, &[]).await,
        [None, None],
        "it was answered just now"
    );
    let all = fixture.why_not(&mut dry_runs, step, &[1]).await;
    assert_eq!(all[0], None);
    assert!(all[1].as_ref().is_some_and(|why| why.contains(quota)), "{all:?}");
    fixture.server.clear_faults();
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[1]).await, [None, None]);
}

#[tokio::test] // proves UPDATE-6
async fn an_apiserver_without_the_subresource_is_told_from_a_pod_that_is_gone() {
    let mut fixture = Fixture::new().await;
    let (mut dry_runs, step) = (PatchDryRuns::default(), UpdateStep::Resize);
    let absent = Fault::new(How::Refuse(404)).resource("pods/resize").times(u32::MAX);
    fixture.server.inject(absent);
    for why in fixture.why_not(&mut dry_runs, step, &[1]).await {
        assert!(why.is_some_and(|why| why.contains("has no pods/resize")));
    }
    assert!(dry_runs.shows_no_resize());
    fixture.server.clear_faults();
    assert_eq!(fixture.why_not(&mut PatchDryRuns::default(), step, &[1]).await, [None, None]);
    // The next look does not list it.
    let pods: Api<Pod> = Api::namespaced(fixture.server.client(), "default");
    pods.delete("logs-0", &DeleteParams::default()).await.expect("it is deleted");
    fixture.pods.truncate(1);
    let mut dry_runs = PatchDryRuns::default();
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[]).await, [None]);
    assert!(!dry_runs.shows_no_resize());
}

#[tokio::test] // proves RESTART-67, UPDATE-6
async fn a_size_that_no_pod_which_is_there_can_have_needs_another_pod() {
    let mut fixture = Fixture::new().await;
    let (mut dry_runs, step) = (PatchDryRuns::default(), UpdateStep::Resize);
    let lower = "memory limits cannot be decreased";
    let by_its_rules = How::Forbid("spec.containers[0].resources.limits", lower);
    fixture.server.inject(Fault::new(by_its_rules).verb("patch").times(u32::MAX));
    let steps = |pods: &[restart::Pod]| -> Vec<UpdateStep> {
        let update = |pod: &restart::Pod| pod.update.clone().expect("it is known");
        pods.iter().map(|pod| update(pod).expect("it is needed").step).collect()
    };
    for _ in 0..2 {
        let pods = fixture.ask(&mut dry_runs, step, &[]).await;
        assert_eq!(steps(&pods), [UpdateStep::Resize, UpdateStep::Resize], "it is not allowed");
        let why = pods[0].unchangeable.clone().expect("it is refused");
        assert!(why.contains(lower) && why.contains("add replace to spec.update.allow"), "{why}");
    }
    fixture.replaces = true;
    for turns in [&[][..], &[], &[1], &[1]] {
        let pods = fixture.ask(&mut dry_runs, step, turns).await;
        assert_eq!(steps(&pods), [UpdateStep::Replace, UpdateStep::Replace], "{turns:?}");
        let update = pods[1].update.clone().expect("it is known").expect("it is needed");
        assert!(update.because.iter().any(|one| one.contains(lower)), "{update:?}");
        assert!(pods[1].unchangeable.is_some(), "after a stop for the size it is turned back");
    }
    // It was upgraded.
    fixture.server.clear_faults();
    fixture.ask(&mut dry_runs, step, &[1]).await;
    let pods = fixture.ask(&mut dry_runs, step, &[1]).await;
    assert_eq!(steps(&pods), [UpdateStep::Replace, UpdateStep::Resize], "the other was not asked");
    // What admission refuses, it may refuse to another pod as well, whatever its code.
    let admission = [
        How::Deny(403, "pods \"logs-0\" is forbidden: exceeded quota: search"),
        How::Deny(422, "ValidatingAdmissionPolicy 'sizes' with binding 'all' denied request: 48Gi"),
        How::Deny(422, "admission webhook \"sizes.example\" denied the request: 48Gi"),
        // A mutating webhook has made it invalid.
        How::Forbid("spec.containers[0].image", "no"),
    ];
    for refusal in admission {
        fixture.server.clear_faults();
        fixture.server.inject(Fault::new(refusal).verb("patch").times(u32::MAX));
        let mut dry_runs = PatchDryRuns::default();
        fixture.ask(&mut dry_runs, step, &[]).await;
        let pods = fixture.ask(&mut dry_runs, step, &[]).await;
        assert_eq!(steps(&pods), [UpdateStep::Resize, UpdateStep::Resize], "{refusal:?}");
        assert!(pods[0].unchangeable.is_some(), "{refusal:?}");
    }
}

#[tokio::test] // proves RESTART-66
async fn an_image_that_admission_makes_of_another_is_what_is_wanted() {
    let fixture = Fixture::new().await;
    let mirror = Fault::new(How::Rewrite("\"b\"", "\"mirror/b\"")).verb("patch").times(u32::MAX);
    fixture.server.inject(mirror);
    for pod in fixture.ask(&mut PatchDryRuns::default(), UpdateStep::Container, &[1]).await {
        assert_eq!(pod.unchangeable, None);
        let update = pod.update.expect("it is known").expect("it is needed");
        assert_eq!(update.patch.images["search"].wanted.as_deref(), Some("mirror/b"));
    }
    fixture.server.clear_faults();
    // One that makes another image of each could never be answered.
    let never = Fault::new(How::Rewrite("/image\",\"value\":\"b", "/image\",\"value\":\"bb"))
        .verb("patch")
        .times(u32::MAX);
    fixture.server.inject(never);
    let why = fixture.why_not(&mut PatchDryRuns::default(), UpdateStep::Container, &[]).await;
    let why = why[0].clone().expect("it is refused");
    assert!(
        why.contains("admission rewrites the image bb of container search again, to bbb"),
        "{why}"
    );
}

#[tokio::test] // proves RESTART-66
async fn without_an_answer_in_a_turn_what_is_wanted_is_not_known() {
    let fixture = Fixture::new().await;
    fixture.server.inject(Fault::new(How::LoseRequest).verb("patch").times(u32::MAX));
    let all = fixture.ask(&mut PatchDryRuns::default(), UpdateStep::Container, &[1]).await;
    assert!(all[0].unchangeable.is_some() && all[0].update.is_ok());
    assert!(all[1].unchangeable.is_none() && all[1].update.is_err());
}

#[tokio::test] // proves UPDATE-107
async fn an_error_that_may_pass_is_no_refusal_for_three_minutes() {
    let fixture = Fixture::new().await;
    let (mut dry_runs, step) = (PatchDryRuns::default(), UpdateStep::Container);
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[]).await, [None, None]);
    fixture.server.inject(Fault::new(How::Refuse(500)).verb("patch").times(u32::MAX));
    later(Duration::from_secs(11)).await;
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[]).await, [None, None]);
    later(Duration::from_secs(180)).await;
    assert!(fixture.why_not(&mut dry_runs, step, &[]).await.iter().all(Option::is_some));
    fixture.server.clear_faults();
    later(Duration::from_secs(11)).await;
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[]).await, [None, None]);
    fixture.server.inject(Fault::new(How::Deny(403, DENIED)).verb("patch").times(u32::MAX));
    later(Duration::from_secs(11)).await;
    assert!(fixture.why_not(&mut dry_runs, step, &[]).await.iter().all(Option::is_some));
}

async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn without_time_only_a_pod_that_is_under_way_is_asked_for() {
    let mut fixture = Fixture::new().await;
    fixture.window = Duration::ZERO;
    let (mut dry_runs, step) = (PatchDryRuns::default(), UpdateStep::Container);
    let all = fixture.why_not(&mut dry_runs, step, &[1]).await;
    assert!(all[0].as_ref().is_some_and(|why| why.contains("was not asked yet")), "{all:?}");
    assert_eq!((&all[1], fixture.patches()), (&None, 1));
    fixture.window = Duration::from_secs(60);
    assert_eq!(fixture.why_not(&mut dry_runs, step, &[]).await, [None, None]);
    fixture.window = Duration::ZERO;
    assert_eq!(
        fixture.why_not(&mut dry_runs, step, &[]).await,
        [None, None],
        "it was answered before"
    );
}
