//! Parses the nodes and the health of a table's case.

use std::collections::BTreeSet;

use super::super::{engine, fit, ids, unknown};
use super::{Case, number};
use crate::{
    Color, DataPlace, KeptStopped, LivePod, Member, MemberStep, Pod, PodPatch, PodUpdate, Restart,
    RunningSnapshot, Time, UpdateStep, Voting,
};
use stayput_api::{ConfigChoice, State};

impl Case {
    /// `a master data (elected; not ready), b-0..2 data`: names or ranges of names, roles, states.
    pub(super) fn nodes(&mut self, text: &str) {
        let restart = Restart {
            request: Default::default(),
            started: Time(0),
            began: None,
            stuck_since: None,
            direction: Default::default(),
            ending: None,
            once: Default::default(),
            frozen: None,
            members: Vec::new(),
        };
        self.snapshot.ledger.restart.get_or_insert(restart);
        let mut voters = Vec::new();
        for one in text.split(',') {
            let (text, states) = one.split_once('(').unwrap_or((one, ""));
            let states: Vec<&str> = states.trim_end_matches([')', ' ']).split(';').collect();
            let states: Vec<&str> =
                states.into_iter().map(str::trim).filter(|state| !state.is_empty()).collect();
            let (name, roles) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
            for name in range(name) {
                if roles.split(' ').any(|role| role == "master" || role == "cluster_manager") {
                    voters.push(name.clone());
                }
                self.node(&name, roles, &states);
            }
        }
        self.vote(&voters);
        let holding = self.engine().nodes.iter().filter(|node| node.holds_data()).count();
        let holding = u32::try_from(holding).expect("small");
        self.engine().health.as_mut().expect("a health").data_nodes = holding;
    }

    pub(super) fn vote(&mut self, names: &[String]) {
        let voters = ids(&names.join(" "));
        self.engine().voting = Ok(Voting::Configurations {
            committed: voters.clone(),
            accepted: voters,
            excluded: Default::default(),
        });
    }

    fn node(&mut self, name: &str, roles: &str, states: &[&str]) {
        let mut pod = fit(name);
        let mut listed = engine(&format!("{name} {roles}")).nodes.remove(0);
        let mut remembered = BTreeSet::new();
        let (mut is_pod, mut is_listed, mut step) = (true, true, Some(MemberStep::Scheduled));
        for state in states {
            let manager = pod.manager.as_mut();
            match *state {
                "elected" => self.engine().elected_master = Some(listed.id.clone()),
                // Its engine does not serve yet.
                "not ready" => {
                    pod.ready = false;
                    if let Ok(manager) = manager {
                        manager.state = State::Starting;
                        manager.ready = Some(false);
                    }
                }
                // A container beside the engine's crashes again and again.
                "sidecar broken" => {
                    pod.ready = false;
                    pod.crash_looping = true;
                }
                // Its container ends again and again, and its manager with it.
                "crash-looping" => {
                    pod.crash_looping = true;
                    if let Ok(manager) = manager {
                        manager.state = State::Backoff;
                    }
                }
                // The least step to its new template is `replace`.
                "replaced" => replaced(&mut pod, &["data"], DataPlace::Claim),
                "replaced without claims" => replaced(&mut pod, &[], DataPlace::OtherVolume),
                "replaced with its data at an unknown place" => {
                    replaced(&mut pod, &["some"], DataPlace::Unknown);
                }
                "replaced without a claim of its data" => {
                    replaced(&mut pod, &["backup"], DataPlace::OtherVolume);
                }
                "replaced with its data elsewhere" => {
                    replaced(&mut pod, &["data"], DataPlace::Claim);
                    let update = pod.update.as_mut().ok().and_then(Option::as_mut);
                    update.expect("made").data_elsewhere = true;
                }
                "another container" => remade(&mut pod, DataPlace::OtherVolume),
                "another container without volumes" => remade(&mut pod, DataPlace::Container),
                "terminating" => pod.terminating = true,
                "manager silent" => pod.manager = Err(unknown()),
                "process ended" => {
                    if let Ok(manager) = manager {
                        manager.state = State::Failed;
                    }
                }
                "not in the cluster" => is_listed = false,
                "no pod" => is_pod = false,
                "not asked" => step = None,
                "done" => step = Some(MemberStep::Finished),
                // The ledger has its roles.
                "remembered" => remembered.clone_from(&listed.roles),
                "under way" => step = Some(MemberStep::Restarting),
                "together" => self.together.push(name.to_owned()),
                "kept stopped" => {
                    step = None;
                    self.snapshot.ledger.kept_stopped.push(KeptStopped {
                        pod_uid: pod.uid.clone(),
                        node: name.to_owned(),
                        sequence: 1,
                        releasing: false,
                        config: ConfigChoice::Mounted,
                        checksum: None,
                    });
                }
                other if other.starts_with("snapshot") => {
                    let hours = number(other["snapshot".len()..].trim_end_matches('h').trim());
                    let since = Time(u64::from(100 - hours) * 60 * 60 * 1000);
                    let name = "nightly:friday".to_owned();
                    listed.snapshot = Some(RunningSnapshot { name, since, shards: 2 });
                }
                other => {
                    let version = other.strip_prefix("version").map(str::trim);
                    listed.version = version.unwrap_or_else(|| panic!("{other}")).to_owned();
                }
            }
        }
        if let Some(step) = step.filter(|_| is_pod) {
            if step == MemberStep::Scheduled {
                self.asked.push(name.to_owned());
            }
            let (pod_uid, node) = (pod.uid.clone(), name.to_owned());
            let (pod, roles) = (name.to_owned(), remembered);
            let member = Member { pod_uid, pod, node, step, roles, ..Member::default() };
            self.snapshot.ledger.restart.as_mut().expect("made").members.push(member);
        }
        if is_pod {
            self.snapshot.pods.push(pod);
        }
        if is_listed {
            self.engine().nodes.push(listed);
        }
    }

    /// `yellow, 2 relocating, 3 data nodes`.
    pub(super) fn health(&mut self, text: &str) {
        let mut parts = text.split(',').map(str::trim);
        let health = self.engine().health.as_mut().expect("a health");
        health.color = match parts.next().expect("a color") {
            "green" => Color::Green,
            "yellow" => Color::Yellow,
            "red" => Color::Red,
            "odd" => Color::Unknown,
            other => panic!("no color: {other}"),
        };
        for part in parts {
            let (count, what) = part.split_once(' ').unwrap_or(("1", part));
            *match what {
                "initializing" => &mut health.initializing,
                "relocating" => &mut health.relocating,
                "unassigned" => &mut health.unassigned,
                "delayed" => &mut health.delayed,
                "looked for" => &mut health.in_flight_fetch,
                "data nodes" => &mut health.data_nodes,
                "busy" => {
                    health.timed_out = true;
                    continue;
                }
                other => panic!("no such count: {other}"),
            } = number(count);
        }
    }
}

fn replaced(pod: &mut Pod, claims: &[&str], data: DataPlace) {
    pod.update = Ok(Some(update(UpdateStep::Replace)));
    let claims = claims.iter().map(|&claim| claim.to_owned()).collect();
    pod.live = Some(Box::new(LivePod { claims, data, ..LivePod::default() }));
}

fn remade(pod: &mut Pod, data: DataPlace) {
    pod.update = Ok(Some(update(UpdateStep::Container)));
    pod.live = Some(Box::new(LivePod { data, ..LivePod::default() }));
}

fn update(step: UpdateStep) -> PodUpdate {
    PodUpdate {
        from: "rev-a".into(),
        to: "rev-b".into(),
        step,
        because: Vec::new(),
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: PodPatch::default(),
    }
}

/// `a-0..2` is a-0, a-1 and a-2.
fn range(name: &str) -> Vec<String> {
    let Some((first, last)) = name.split_once("..") else { return vec![name.to_owned()] };
    let (set, first) = first.rsplit_once('-').expect("a set and its first number");
    (number(first)..=number(last)).map(|at| format!("{set}-{at}")).collect()
}
