//! Requests: taken up once, by id, whatever the annotation says later.

use std::collections::BTreeSet;

use crate::planner::Planner;
use crate::rules::list_names;
use crate::{
    HistoryEntry, Member, Outcome, Phase, Pod, Reason, Request, Restart, Target, annotation,
};

impl Planner<'_> {
    /// Takes up what stands on the SearchCluster.
    pub(super) fn take_up(&mut self) {
        let cluster = &self.snapshot.cluster;
        if cluster.deleting {
            self.end_with(Outcome::Aborted, "the SearchCluster is being deleted");
            self.ledger.to_mut().queued = None;
            return;
        }
        self.claim_phase();
        if let Some(text) = cluster.annotations.get(annotation::REQUEST) {
            match Request::parse(text) {
                Ok(request) if self.ledger.has_handled(&request.id) => {}
                Ok(request) if !cluster.has_status => self.adopt(&request),
                Ok(request) => self.accept(request),
                Err(error) => self.ignore_input(None, error.to_string()),
            }
        }
        self.hear_cancel();
        self.supersede();
        self.tell_queued();
        self.notice_drift();
        if self.ledger.restart.is_none()
            && self.ledger.queued.is_some()
            && let Some(queued) = self.ledger.to_mut().queued.take()
        {
            self.open(queued);
        }
    }

    /// Replaces a phase on the SearchCluster by a request: what is asked there is asked once.
    fn claim_phase(&mut self) {
        let cluster = &self.snapshot.cluster;
        let Some(word) = cluster.annotations.get(annotation::PHASE) else { return };
        match Phase::parse(word).map(|phase| (phase, phase.asks_for())) {
            Ok((
                Phase::Schedule | Phase::ScheduleRolling | Phase::ScheduleCoordinated,
                Some(strategy),
            )) => {
                let id = self.snapshot.fresh_id.clone();
                let request = Request { id, strategy, ..Request::default() };
                let phase = word.clone();
                self.act(crate::Action::ClaimTrigger { phase, request });
            }
            Ok((phase, _)) => self.ignore_input(
                None,
                format!(
                    "{} on the SearchCluster asks for nothing: write schedule, schedule-rolling or \
                     schedule-coordinated",
                    phase.as_str()
                ),
            ),
            Err(unknown) => self.ignore_input(None, unknown.to_string()),
        }
    }

    /// A request that was there before we were is nobody's wish of now.
    fn adopt(&mut self, request: &Request) {
        self.remember(&request.id);
        let message = format!("Request {} was there before the first look: left alone", request.id);
        self.tell(None, Reason::RequestAdopted, message);
    }

    /// Remembers that a request was taken up. The one that stands on the SearchCluster is never
    /// forgotten: it would be taken for a new one.
    pub(super) fn remember(&mut self, id: &str) {
        let text = self.snapshot.cluster.annotations.get(annotation::REQUEST);
        let standing = text.and_then(|text| Request::parse(text).ok());
        self.ledger.to_mut().remember(id, standing.as_ref().map(|request| request.id.as_str()));
    }

    /// Begins a request, or lets it wait for the one under way.
    fn accept(&mut self, request: Request) {
        self.remember(&request.id);
        if self.ledger.restart.is_none() {
            return self.open(request);
        }
        if let Some(replaced) = self.ledger.to_mut().queued.take() {
            self.record_unbegun(
                &replaced,
                Outcome::Superseded,
                format!("request {} took its place in the queue", request.id),
            );
        }
        self.ledger.to_mut().queued = Some(request);
    }

    /// Says that a request waits, once it does.
    fn tell_queued(&mut self) {
        let Some(queued) = &self.ledger.queued else { return };
        if self.ledger.restart.is_some() && self.snapshot.ledger.queued.as_ref() != Some(queued) {
            let mut message = format!("Request {} waits for the restart under way", queued.id);
            let restart = self.restart();
            if let Some(obstacle) = restart.as_deref().and_then(|one| self.why_not_superseded(one))
            {
                message = format!("{message} and does not take its place: {}", obstacle.message);
            }
            self.tell(None, Reason::RestartQueued, message);
        }
    }

    /// Opens a restart of the nodes the request means.
    pub(super) fn open(&mut self, request: Request) {
        if request.target.is_by_engine()
            && let Err(refusal) = self.view.engine()
        {
            self.wait_all(
                refusal.code,
                format!("roles and zones are the engine's to tell: {}", refusal.message),
            );
            self.ledger.to_mut().queued = Some(request);
            return;
        }
        let members = match self.members(&request.target) {
            Ok(members) => members,
            Err(message) => {
                self.tell(
                    None,
                    Reason::RestartSkipped,
                    format!("Request {} skipped: {message}", request.id),
                );
                return self.record_unbegun(&request, Outcome::Aborted, message);
            }
        };
        let message = format!(
            "Starting {} restart {} of {} node{}",
            request.strategy.as_str(),
            request.id,
            members.len(),
            if members.len() == 1 { "" } else { "s" }
        );
        self.tell(None, Reason::RestartStarted, message);
        self.ledger.to_mut().restart = Some(Restart {
            request,
            started: self.snapshot.now,
            began: None,
            direction: crate::Direction::default(),
            ending: None,
            once: crate::Once::default(),
            frozen: None,
            members,
        });
    }

    /// The nodes a target means, by name, without those kept stopped.
    pub(super) fn members(&self, target: &Target) -> Result<Vec<Member>, String> {
        if let Some(missing) = target.nodes.iter().find(|node| !self.is_known(node)) {
            return Err(format!("there is no node {missing} among the cluster's pods"));
        }
        let mut members: Vec<Member> = self
            .view
            .pods()
            .filter(|pod| !pod.terminating && !self.is_to_be_stopped(pod))
            .filter(|pod| self.is_meant(target, pod))
            .map(|pod| scheduled(pod, self.snapshot.now))
            .collect();
        members.sort_by(|one, other| one.node.cmp(&other.node));
        if !members.is_empty() {
            return Ok(members);
        }
        match &target.zone {
            Some(zone) if !self.zones().contains(zone.as_str()) => Err(self.no_such_zone(zone)),
            Some(_) | None => Err("it means no node that may be restarted".into()),
        }
    }

    /// The zones that nodes of our pods are in.
    fn zones(&self) -> BTreeSet<&str> {
        let nodes = self.view.pods().filter_map(|pod| self.view.node(&pod.node));
        nodes.filter_map(|node| node.zone.as_deref()).collect()
    }

    /// What to ask for instead of a zone that no node is in.
    fn no_such_zone(&self, zone: &str) -> String {
        let attribute = &self.policy.zone_attribute;
        let zones: Vec<&str> = self.zones().into_iter().collect();
        if zones.is_empty() {
            return format!(
                "no node of the cluster has the attribute {attribute} (node.attr.{attribute}), so \
                 there are no zones; spec.restart.zoneAttribute names another attribute"
            );
        }
        let pods = self
            .view
            .pods()
            .filter(|pod| self.view.node(&pod.node).is_some_and(|node| node.zone.is_none()));
        let without = match pods.count() {
            0 => String::new(),
            1 => format!("; 1 node has no attribute {attribute}"),
            more => format!("; {more} nodes have no attribute {attribute}"),
        };
        format!("no node is in zone {zone:?}, there are {}{without}", list_names(&zones))
    }

    fn is_known(&self, node: &str) -> bool {
        self.view.pods().any(|pod| pod.node == node)
    }

    fn is_meant(&self, target: &Target, pod: &Pod) -> bool {
        let node = self.view.node(&pod.node);
        let has_role = |role: &String| node.is_some_and(|node| node.roles.contains(role));
        let in_zone = |zone: &String| node.is_some_and(|node| node.zone.as_ref() == Some(zone));
        (target.nodes.is_empty() || target.nodes.contains(&pod.node))
            && target.role.as_ref().is_none_or(has_role)
            && target.zone.as_ref().is_none_or(in_zone)
    }

    /// Ends a request that never began.
    pub(super) fn record_unbegun(&mut self, request: &Request, outcome: Outcome, reason: String) {
        self.ledger.to_mut().record(HistoryEntry {
            id: request.id.clone(),
            strategy: request.strategy,
            outcome,
            reason,
            started: self.snapshot.now,
            seconds: 0,
            nodes: 0,
        });
    }

    /// Says that something a person wrote cannot be understood, and leaves it.
    pub(super) fn ignore_input(&mut self, pod: Option<&str>, message: String) {
        match pod {
            Some(uid) => self.wait(uid, crate::Code::InvalidInput, message.clone()),
            None => self.wait_all(crate::Code::InvalidInput, message.clone()),
        }
        self.tell(pod, Reason::InputIgnored, message);
    }
}

/// A member that waits for its turn.
pub(super) fn scheduled(pod: &Pod, now: crate::Time) -> Member {
    Member {
        pod_uid: pod.uid.clone(),
        pod: pod.name.clone(),
        node: pod.node.clone(),
        since: now,
        ..Member::default()
    }
}
