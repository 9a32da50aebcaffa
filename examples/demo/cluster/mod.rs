//! The second act: three nodes in three pods, restarted by the reconciler while documents come in.

mod engine;
mod facts;
mod kubectl;
mod kubelet;
mod member;
mod objects;
mod pki;
mod traffic;
mod world;

use stayput_restart::Strategy;

use crate::interruption::Interruption;
use crate::narrator::Narrator;
use crate::stage::expect;
pub(crate) use engine::Engine;
use engine::{Network, Settings};
use facts::Facts;
use kubectl::Kubectl;
use member::Member;
use traffic::Traffic;
use world::World;

/// Names of the pods, which are those of the nodes.
const NAMES: [&str; 3] = ["logs-0", "logs-1", "logs-2"];

/// Plays it; what it started has ended when it returns, unless it failed.
pub(crate) fn play(
    engine: &Engine,
    narrator: &mut Narrator,
    interruption: &Interruption,
) -> Result<(), String> {
    let world = World::start()?;
    let result = act(engine, &world, narrator, interruption);
    let log = world.end_of_log();
    let ended = world.end();
    result.map_err(|sentence| {
        format!("{sentence}\n\nThe last lines of managers and engines:\n{log}")
    })?;
    ended
}

/// All that is on stage.
struct Play<'a> {
    engine: &'a Engine,
    world: &'a World,
    narrator: &'a mut Narrator,
    kubectl: Kubectl<'a>,
    network: Network,
    members: Vec<Member>,
}

fn act(
    engine: &Engine,
    world: &World,
    narrator: &mut Narrator,
    interruption: &Interruption,
) -> Result<(), String> {
    narrator.act("Second act: a cluster of three, and the reconciler");
    let kubectl = Kubectl::new(world.kubeconfig(), engine.patience(), interruption);
    let network = Network::free()?;
    let mut play = Play { engine, world, narrator, kubectl, network, members: Vec::new() };
    play.begin(interruption)?;
    let traffic = Traffic::start(play.network.addresses())?;
    let outcome = play.config_change().and_then(|()| {
        play.rolling(&traffic)?;
        play.coordinated(&traffic)
    });
    let total = traffic.end();
    outcome?;
    play.end(total?, interruption)
}

impl Play<'_> {
    fn settings(&self, round: &str) -> Settings {
        Settings { network: self.network.clone(), round: round.to_owned() }
    }

    /// Pods, their managers, and a SearchCluster.
    fn begin(&mut self, interruption: &Interruption) -> Result<(), String> {
        self.narrator.step("Three pods with a manager each, a SearchCluster, and the reconciler");
        self.world.prepare()?;
        let settings = self.settings("one");
        for (name, address) in NAMES.iter().zip(self.network.addresses()) {
            let uid = self.world.create_pod(name, &address.0)?;
            let files = self.engine.files(self.world.directory(), name, &settings)?;
            self.world.mount(name, &files)?;
            let member = Member::start(self.engine, self.world, &self.network, name, &uid)?;
            interruption.kills(member.pid);
            self.members.push(member);
        }
        facts::until_formed(&self.network, self.engine.patience())?;
        self.world.declare(&self.network)?;
        self.kubectl.quoted(self.narrator, &["status", "logs"])?;
        self.narrator.proved("three nodes are one cluster, and nobody has asked for anything");
        Ok(())
    }

    /// Other Secrets; nothing is restarted by that.
    fn config_change(&mut self) -> Result<(), String> {
        self.narrator.step("A config change: the Secrets of all three pods get another attribute");
        let before = Facts::look(self.world, &self.network)?;
        self.configure("two")?;
        self.kubectl.quoted(self.narrator, &["restart", "logs", "--dry-run"])?;
        Facts::look(self.world, &self.network)?.expect_same_processes(&before)?;
        self.narrator.proved("nothing is restarted by that: engines read it when they start");
        Ok(())
    }

    fn configure(&self, round: &str) -> Result<(), String> {
        for name in NAMES {
            let files = self.engine.files(self.world.directory(), name, &self.settings(round))?;
            self.world.configure(name, &files)?;
        }
        Ok(())
    }

    fn rolling(&mut self, traffic: &Traffic) -> Result<(), String> {
        self.narrator.step("A rolling restart, while documents come in");
        let before = Facts::look(self.world, &self.network)?;
        traffic.reset();
        self.kubectl.quoted(self.narrator, &["restart", "logs", "--watch"])?;
        self.restarted(&before, "two", Strategy::Rolling)?;
        self.documents(traffic)
    }

    fn coordinated(&mut self, traffic: &Traffic) -> Result<(), String> {
        self.narrator
            .step("Another port between the nodes: such nodes can only be restarted together");
        let before = Facts::look(self.world, &self.network)?;
        self.network.move_transport()?;
        self.configure("three")?;
        traffic.reset();
        self.kubectl
            .quoted(self.narrator, &["restart", "logs", "--coordinated", "--yes", "--watch"])?;
        self.restarted(&before, "three", Strategy::Coordinated)?;
        self.documents(traffic)
    }

    /// What was promised of a restart.
    fn restarted(&mut self, before: &Facts, round: &str, strategy: Strategy) -> Result<(), String> {
        facts::until_formed(&self.network, self.engine.patience())?;
        let after = Facts::look(self.world, &self.network)?;
        let transport = self.network.transport_port();
        after.expect_restarted(before, round, transport)?;
        for member in &self.members {
            member.expect_alive()?;
        }
        let last = self.world.last_restart()?;
        expect(last.strategy, strategy, "the strategy in the history")?;
        expect(last.nodes, 3, "the nodes in the history")?;
        self.narrator.proved("the pods have the uids, and the managers the pids, that they had");
        self.narrator.proved(&format!(
            "three new engine processes run on the new config (node.attr.round: {round}, \
             transport port {transport})"
        ));
        let left = after.allocation;
        expect(left, None, "cluster.routing.allocation.enable after the restart")?;
        self.narrator.proved("the cluster is green, and its allocation setting is as it was");
        Ok(())
    }

    fn documents(&mut self, traffic: &Traffic) -> Result<(), String> {
        let told = traffic.check()?;
        self.narrator.proved(&format!(
            "{} documents were acknowledged until now, and every one of them is found; the longest \
             wait for an acknowledgement was {:.1} s",
            told.acknowledged,
            told.longest.as_secs_f32()
        ));
        Ok(())
    }

    fn end(&mut self, total: usize, interruption: &Interruption) -> Result<(), String> {
        self.narrator.step("The end: who restarted what, and the pods are deleted");
        self.kubectl.quoted(self.narrator, &["history", "logs"])?;
        self.world.stop_reconciler()?;
        for member in &self.members {
            interruption.forgets(member.pid);
            member.terminate()?;
        }
        self.narrator.proved(&format!(
            "{total} documents, two restarts of three nodes, and no pod was replaced"
        ));
        Ok(())
    }
}
