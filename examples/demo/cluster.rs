//! Part 2: three nodes in three pods, restarted by the reconciler while documents are indexed.

mod engine;
mod facts;
mod kubectl;
mod kubelet;
mod kubernetes;
mod member;
mod objects;
mod pki;
mod traffic;

use stayput_restart::Strategy;

use crate::error::Result;
use crate::interruption::Interruption;
use crate::narrator::Narrator;
use crate::pod::expect;
pub(crate) use engine::Engine;
use engine::{Network, Settings};
use facts::Facts;
use kubectl::Kubectl;
use kubernetes::Kubernetes;
use member::Member;
use traffic::Traffic;

/// Names of the pods, and of the nodes.
const NAMES: [&str; 3] = ["logs-0", "logs-1", "logs-2"];

/// Runs part 2. Unless it fails, all that it started has ended when it returns.
pub(crate) fn run(
    engine: &Engine,
    narrator: &mut Narrator,
    interruption: &Interruption,
) -> Result<()> {
    let kubernetes = Kubernetes::start()?;
    let result = part(engine, &kubernetes, narrator, interruption);
    let log = kubernetes.end_of_log();
    let ended = kubernetes.end();
    result.map_err(|error| format!("{error}\n\nThe last lines of managers and engines:\n{log}"))?;
    ended
}

/// The cluster, and what the demo needs to restart it.
struct Demo<'a> {
    engine: &'a Engine,
    kubernetes: &'a Kubernetes,
    narrator: &'a mut Narrator,
    kubectl: Kubectl<'a>,
    network: Network,
    members: Vec<Member>,
}

fn part(
    engine: &Engine,
    kubernetes: &Kubernetes,
    narrator: &mut Narrator,
    interruption: &Interruption,
) -> Result<()> {
    narrator.part("Part 2: a cluster of three nodes, and the reconciler");
    let kubectl = Kubectl::new(kubernetes.kubeconfig(), engine.restart_timeout(), interruption);
    let network = Network::free();
    let mut demo = Demo { engine, kubernetes, narrator, kubectl, network, members: Vec::new() };
    demo.begin(interruption)?;
    let traffic = Traffic::start(demo.network.addresses())?;
    let outcome = demo.config_change().and_then(|()| {
        demo.rolling(&traffic)?;
        demo.coordinated(&traffic)
    });
    let total = traffic.end();
    outcome?;
    demo.end(total?, interruption)
}

impl Demo<'_> {
    fn settings(&self, round: &str) -> Settings {
        Settings { network: self.network.clone(), round: round.to_owned() }
    }

    /// Creates the pods, their managers, and the SearchCluster.
    fn begin(&mut self, interruption: &Interruption) -> Result<()> {
        self.narrator
            .step("Start: three pods with a manager each, a SearchCluster, and the reconciler");
        self.kubernetes.prepare()?;
        let settings = self.settings("one");
        for (name, address) in NAMES.iter().zip(self.network.addresses()) {
            let uid = self.kubernetes.create_pod(name, &address.0)?;
            let files = self.engine.files(self.kubernetes.directory(), name, &settings)?;
            self.kubernetes.mount(name, &files)?;
            let member = Member::start(self.engine, self.kubernetes, &self.network, name, &uid)?;
            interruption.register(member.pid);
            self.members.push(member);
        }
        facts::until_formed(&self.network, self.engine.restart_timeout())?;
        self.kubernetes.declare(&self.network)?;
        self.kubectl.quoted(self.narrator, &["status", "logs"])?;
        self.narrator.proved("three nodes form a cluster, and no restart is requested");
        Ok(())
    }

    /// Changes the Secrets, which alone restarts nothing.
    fn config_change(&mut self) -> Result<()> {
        self.narrator
            .step("Config change: the Secrets of all three pods get another node attribute");
        let before = Facts::observe(self.kubernetes, &self.network)?;
        self.configure("two")?;
        self.kubectl.quoted(self.narrator, &["restart", "logs", "--dry-run"])?;
        Facts::observe(self.kubernetes, &self.network)?.expect_same_processes(&before)?;
        self.narrator.proved(
            "a config change alone restarts nothing; engines read their config when they start",
        );
        Ok(())
    }

    fn configure(&self, round: &str) -> Result<()> {
        for name in NAMES {
            let files =
                self.engine.files(self.kubernetes.directory(), name, &self.settings(round))?;
            self.kubernetes.configure(name, &files)?;
        }
        Ok(())
    }

    fn rolling(&mut self, traffic: &Traffic) -> Result<()> {
        self.narrator.step("Rolling restart, while documents are indexed");
        let before = Facts::observe(self.kubernetes, &self.network)?;
        traffic.reset();
        self.kubectl.quoted(self.narrator, &["restart", "logs", "--watch"])?;
        self.restarted(&before, "two", Strategy::Rolling)?;
        self.documents(traffic)
    }

    fn coordinated(&mut self, traffic: &Traffic) -> Result<()> {
        self.narrator.step(
            "Coordinated restart: with another transport port, all nodes must be stopped together",
        );
        let before = Facts::observe(self.kubernetes, &self.network)?;
        self.network.move_transport();
        self.configure("three")?;
        traffic.reset();
        self.kubectl
            .quoted(self.narrator, &["restart", "logs", "--coordinated", "--yes", "--watch"])?;
        self.restarted(&before, "three", Strategy::Coordinated)?;
        self.documents(traffic)
    }

    /// Checks the promises about a restart.
    fn restarted(&mut self, before: &Facts, round: &str, strategy: Strategy) -> Result<()> {
        facts::until_formed(&self.network, self.engine.restart_timeout())?;
        let after = Facts::observe(self.kubernetes, &self.network)?;
        let transport = self.network.transport_port();
        after.expect_restarted(before, round, transport)?;
        for member in &self.members {
            member.expect_alive()?;
        }
        let last = self.kubernetes.last_restart()?;
        expect(last.strategy, strategy, "the strategy in the history")?;
        expect(last.nodes, 3, "the nodes in the history")?;
        self.narrator.proved("every pod kept its uid, and every manager its pid");
        self.narrator.proved(&format!(
            "three new engine processes run with the new config (node.attr.round: {round}, \
             transport port {transport})"
        ));
        let left = after.allocation;
        expect(left, None, "cluster.routing.allocation.enable after the restart")?;
        self.narrator
            .proved("the cluster is green, and its allocation setting is the same as before");
        Ok(())
    }

    fn documents(&mut self, traffic: &Traffic) -> Result<()> {
        let documents = traffic.check()?;
        self.narrator.proved(&format!(
            "{} documents were acknowledged so far, and all of them are found; the longest \
             wait for an acknowledgement was {:.1} s",
            documents.acknowledged,
            documents.longest.as_secs_f32()
        ));
        Ok(())
    }

    fn end(&mut self, total: usize, interruption: &Interruption) -> Result<()> {
        self.narrator.step("End: the history of restarts, then the pods are deleted");
        self.kubectl.quoted(self.narrator, &["history", "logs"])?;
        self.kubernetes.stop_reconciler()?;
        for member in &self.members {
            interruption.unregister(member.pid);
            member.terminate()?;
        }
        self.narrator.proved(&format!(
            "{total} documents, two restarts of three nodes, and no pod was replaced"
        ));
        Ok(())
    }
}
