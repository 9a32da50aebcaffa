//! The command line: commands, arguments and their help.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use stayput_api::Span;
use stayput_inject::{Authority, ConfigSource, Login, Options, check};
use stayput_restart::{Request, Strategy, Target, Time};

use crate::runbook;

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 refused or failed, the restart did not end as done, or doctor has found errors; \
2 apiserver or reconciler not reachable, or doctor could not read everything; 64 wrong usage, or a \
file that cannot be read; 124 not done within --timeout.";

/// Restart Elasticsearch and OpenSearch clusters in place, and show what a restart waits for
#[derive(Debug, Parser)]
#[command(name = "kubectl-stayput", bin_name = "kubectl stayput", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(subcommand)]
    pub(crate) command: AnyCommand,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Namespace of the SearchCluster [default: that of the context]
    #[arg(short, long, global = true, value_name = "NAMESPACE", value_parser = check::cluster, help_heading = "Kubernetes")]
    pub(crate) namespace: Option<String>,
    /// Context in the kubeconfig [default: the current one]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Kubernetes")]
    pub(crate) context: Option<String>,
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Kubernetes")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Print JSON for programs; its schema is proto/kubectl-stayput.schema.json
    #[arg(short, long, global = true, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) output: Option<Format>,
    /// Print without colors, as when NO_COLOR is set
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) no_color: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object; `watch` prints one object per line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AnyCommand {
    #[command(flatten)]
    Cluster(Command),
    #[command(flatten)]
    Manifests(ManifestsCommand),
    #[command(flatten)]
    Program(ProgramCommand),
}

/// Commands about this program: nothing is read and nothing is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    /// Show what to do about a code, or about an alert
    Runbook {
        /// The code, as `status`, `why` and `plan` show it, or the name of an alert or of a page
        #[arg(value_name = "CODE", value_parser = PossibleValuesParser::new(runbook::names()), hide_possible_values = true)]
        code: String,
    },
    /// Print the definition of SearchClusters (CRD) of this version, for `kubectl apply`
    Crd,
    /// Print the completion of commands and options for a shell
    Completion {
        /// The shell that reads it
        shell: Shell,
    },
}

/// Commands about text: nothing is asked of Kubernetes, and nothing is sent there.
#[derive(Debug, Subcommand)]
pub(crate) enum ManifestsCommand {
    /// Write manifests with the manager in front of the engine; nothing is sent to Kubernetes
    Inject(Box<InjectArgs>),
    /// Write manifests as they were before `inject`; nothing is sent to Kubernetes
    Uninject(ManifestsArg),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make certificates, keys and the SearchCluster of a cluster; the reconciler keeps them valid
    Init(InitArgs),
    /// Show the state of a cluster, or of all, the restart under way and what blocks it
    Status(ClustersArg),
    /// Show a dry run: the steps of a restart, and which rule blocks which node
    Plan(Box<PlanArgs>),
    /// Show what one node waits for, and how its last restart ended
    Why {
        /// Name of the node
        node: String,
        #[command(flatten)]
        cluster: ClusterOption,
        #[command(flatten)]
        saved: SavedArg,
    },
    /// Save all input of the decisions, for a bug report; it holds no values of Secrets, but their names
    Snapshot {
        #[command(flatten)]
        cluster: ClusterArg,
        /// File to create [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        reconciler: ReconcilerArg,
    },
    /// Show for each pod what its owner wants now, and the least step that gets there
    Diff(ClusterArg),
    /// Find what is wrong with a cluster and around it, and show the commands that mend it
    Doctor(DoctorArgs),
    /// Show the restarts that have ended
    History(ClustersArg),
    /// Request a restart
    Restart(Box<RestartArgs>),
    /// Cancel a restart: no further node is stopped, nodes already stopped are started
    Cancel {
        #[command(flatten)]
        cluster: ClusterArg,
        /// Id of the restart [default: the one under way, or else the one that waits]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Stop no further node until `resume`; nodes that are stopped already are started
    Pause(ClusterArg),
    /// Let nodes be stopped again after `pause`; a restart under way goes on
    Resume(ClusterArg),
    /// Stop nodes and keep them stopped; their pods are kept
    Stop(StopArgs),
    /// Start nodes that were stopped with `stop`
    Start(NodesArgs),
    /// Take a cluster out of stayput's hands: what is owed is undone, and its pods stay
    Detach(DetachArgs),
    /// Show a cluster on a page in a browser: read-only, live, on this machine alone
    Ui {
        #[command(flatten)]
        cluster: ClusterArg,
        /// Port on 127.0.0.1 [default: a free one]
        #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
        port: u16,
    },
    /// Watch a restart until it ends; prints a line for each change
    Watch {
        #[command(flatten)]
        cluster: ClusterArg,
        /// Id of the restart [default: the one under way, or else the next]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        /// Watch no longer than this [default: until it ends]
        #[arg(long, value_name = "DURATION", value_parser = Span::parse)]
        timeout: Option<Span>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ManifestsArg {
    /// Files with manifests, YAML or JSON [default: -, which is stdin]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InjectArgs {
    #[command(flatten)]
    pub(crate) manifests: ManifestsArg,
    /// Write no manifests; say what would be done, and what cannot be done
    #[arg(long)]
    pub(crate) check: bool,
    /// Image of the manager [default: stayput/manager of this version]
    #[arg(long, value_name = "IMAGE", value_parser = check::image)]
    image: Option<String>,
    /// A word of the entrypoint of the engine's image; once for each word. Needed where the image is
    /// not an official one and the container has no command. Beside other engines only used there
    #[arg(long, value_name = "WORD", allow_hyphen_values = true, value_parser = check::word)]
    command: Vec<String>,
    /// Leave this object as it is, as in StatefulSet/exporter whose container is only named like an engine;
    /// repeatable
    #[arg(long, value_name = "KIND/NAME", value_parser = check::object)]
    skip: Vec<String>,
    /// The engine's container [default: that with an official image, or named like the engine]
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// Name of the cluster: the managers' certificate is the Secret NAME-manager-tls [default: the
    /// object's name]
    #[arg(long, value_name = "NAME", value_parser = check::cluster)]
    cluster: Option<String>,
    /// URL that answers when the engine is ready, as for `stayput run --ready` [default: its health
    /// where it is known how to ask for it, else its open port]
    #[arg(long, value_name = "URL", value_parser = check::ready)]
    ready: Option<String>,
    /// Login with which the manager asks for the engine's health: secret/NAME with username and
    /// password, apiKey, or elastic; or secret/NAME/KEY with USER:PASSWORD [default: for ECK its
    /// user elastic]
    #[arg(long, value_name = "SECRET", value_parser = Login::parse)]
    ready_auth: Option<Login>,
    /// CA of the engine's certificates, for that: secret/NAME or configmap/NAME with ca.crt, or with
    /// /KEY behind it [default: for ECK its own]
    #[arg(long, value_name = "SOURCE", value_parser = Authority::parse)]
    ready_ca: Option<Authority>,
    /// Where the engine's config files come from, secret/NAME or configmap/NAME; with =/DIRECTORY behind it
    /// where it is not known of the image where the engine reads them [default: what is mounted at the
    /// engine's yml]
    #[arg(long, value_name = "SOURCE", value_parser = ConfigSource::parse)]
    config: Option<ConfigSource>,
    /// Before its first start, each pod of OpenSearch keeps the engine's classes in an archive, so that
    /// its engine starts faster: the pod itself starts later, each restart in place ends earlier
    #[arg(long)]
    warm: bool,
    /// The manager serves its metrics to everybody who reaches it, so that Prometheus can read them
    #[arg(long)]
    open_metrics: bool,
    /// The cluster gives each pod its user, as OpenShift does: none is written for the init container
    #[arg(long)]
    assigned_user: bool,
}

impl InjectArgs {
    pub(crate) fn options(&self) -> Options {
        Options {
            image: self.image.clone(),
            command: self.command.clone(),
            skip: self.skip.clone(),
            container: self.container.clone(),
            cluster: self.cluster.clone(),
            ready: self.ready.clone(),
            ready_auth: self.ready_auth.clone(),
            ready_ca: self.ready_ca.clone(),
            config: self.config.clone(),
            warm: self.warm,
            open_metrics: self.open_metrics,
            assigned_user: self.assigned_user,
        }
    }
}

/// The longest name of a cluster: that of its Role has 21 characters more, and Kubernetes allows 253.
const LONGEST_CLUSTER: usize = 232;

/// Parses a name from which those of the Secrets and of the Role of `init` can be made.
fn cluster_name(text: &str) -> Result<String, String> {
    if text.len() > LONGEST_CLUSTER {
        return Err(format!("it has {} characters: {LONGEST_CLUSTER} at most", text.len()));
    }
    check::cluster(text)
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Name of the cluster, and of its SearchCluster
    #[arg(value_name = "CLUSTER", value_parser = cluster_name)]
    pub(crate) cluster: String,
    /// Labels of its pods, for example app=logs [default: those that the StatefulSet with the name of
    /// the cluster selects, or those that ECK and the OpenSearch operator set]
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Secret with ca.crt, the CA of the engine's certificates. Needed if the engine has TLS [default:
    /// that of ECK or the OpenSearch operator]
    #[arg(long, value_name = "SECRET")]
    pub(crate) engine_ca: Option<String>,
    /// The engine has no TLS [default: as far as the pods say so]
    #[arg(long, conflicts_with = "engine_ca")]
    pub(crate) engine_http: bool,
    /// Secret with the engine's credentials for the reconciler [default: that of ECK or the OpenSearch
    /// operator]
    #[arg(long, value_name = "SECRET")]
    pub(crate) credentials: Option<String>,
    /// Have cert-manager make and renew the managers' certificate: the name of an Issuer with a CA of
    /// its own, or ClusterIssuer/NAME
    #[arg(long, value_name = "ISSUER")]
    pub(crate) cert_manager: Option<String>,
    /// Change nothing; show what would be made
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArg {
    /// Name of the SearchCluster; not needed if the namespace has only one
    #[arg(id = "cluster", value_name = "CLUSTER")]
    pub(crate) name: Option<String>,
}

/// One SearchCluster, or all.
#[derive(Debug, Args)]
pub(crate) struct ClustersArg {
    #[command(flatten)]
    pub(crate) cluster: ClusterArg,
    /// All SearchClusters of all namespaces
    #[arg(short = 'A', long, conflicts_with = "cluster")]
    pub(crate) all_namespaces: bool,
}

/// The SearchCluster, for commands whose arguments are nodes.
#[derive(Debug, Args)]
pub(crate) struct ClusterOption {
    /// Name of the SearchCluster; needed if several have such nodes
    #[arg(id = "cluster", long = "cluster", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    /// Names of the nodes
    #[arg(value_name = "NODE", required = true)]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) cluster: ClusterOption,
    /// Change nothing; show what would be done and its cost
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) nodes: NodesArgs,
    /// Confirm the outage, if no node is left
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReconcilerArg {
    /// Address of the reconciler's snapshots [default: kubectl forwards the leader's port]
    #[arg(id = "reconciler", long = "reconciler", value_name = "URL", env = "STAYPUT_RECONCILER")]
    pub(crate) address: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DetachArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArg,
    /// Cancel the restart that is under way, and those that wait
    #[arg(long)]
    pub(crate) cancel: bool,
    /// Wait no longer than this; what was begun goes on [default: until it is detached]
    #[arg(long, value_name = "DURATION", value_parser = Span::parse)]
    pub(crate) timeout: Option<Span>,
    /// Change nothing; show what would be cancelled, deleted and taken off
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do it without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) clusters: ClustersArg,
    #[command(flatten)]
    pub(crate) reconciler: ReconcilerArg,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArg,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) reconciler: ReconcilerArg,
    #[command(flatten)]
    pub(crate) saved: SavedArg,
}

#[derive(Debug, Args)]
pub(crate) struct SavedArg {
    /// Read this file, saved with `snapshot`, instead of Kubernetes
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    pub(crate) snapshot: Option<PathBuf>,
}

/// How to restart, and which nodes.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Stop all nodes before any is started: an outage
    #[arg(long)]
    coordinated: bool,
    /// Restart only this node; may be given several times
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Restart only nodes with this role
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Restart only nodes in this zone
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
}

impl ScopeArgs {
    pub(crate) fn strategy_and_target(&self) -> (Strategy, Target) {
        let strategy = if self.coordinated { Strategy::Coordinated } else { Strategy::Rolling };
        let mut nodes = self.nodes.clone();
        nodes.sort();
        nodes.dedup();
        (strategy, Target { nodes, role: self.role.clone(), zone: self.zone.clone() })
    }

    /// True if any of these options is given.
    pub(crate) fn is_given(&self) -> bool {
        self.strategy_and_target() != (Strategy::Rolling, Target::default())
    }

    /// The request for a dry run, if any of these options is given.
    pub(crate) fn dry_run(&self) -> Option<Request> {
        let (strategy, target) = self.strategy_and_target();
        let request = Request { id: "dry-run".into(), strategy, target, ..Request::default() };
        self.is_given().then_some(request)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArg,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) reconciler: ReconcilerArg,
    /// Stop no node before this time, for example 2026-11-21T03:00:00Z or 2026-11-21T05:00:00+02:00
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    not_before: Option<Time>,
    /// Stop no further node once the restart has run this long, for example 1h
    #[arg(long, value_name = "DURATION", value_parser = Span::parse)]
    deadline: Option<Span>,
    /// Accept that these indices without replicas are unavailable while their node restarts, for
    /// example 'scratch-*'; may be given several times
    #[arg(long, value_name = "PATTERN")]
    allow_unreplicated: Vec<String>,
    /// Accept an outage: stop a node of this restart even if no master can be elected, or a shard has
    /// no copy, until it is back
    #[arg(long)]
    allow_outage: bool,
    /// Do not wait for a maintenance window (spec.restart.windows)
    #[arg(long)]
    outside_windows: bool,
    /// Do not evaluate this predicate for this restart, by its name in docs/rules.md; may be given
    /// several times
    #[arg(long = "skip-rule", value_name = "NAME")]
    skip_rules: Vec<String>,
    /// Id of the request; a second request with the same id has no effect [default: a random one]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Change nothing; show the request and the steps of the restart
    #[arg(long, conflicts_with_all = ["wait", "watch"])]
    pub(crate) dry_run: bool,
    /// Wait until the restart ends; print its outcome, and why it may not be seen
    #[arg(long, group = "until_end")]
    pub(crate) wait: bool,
    /// Wait until the restart ends; print a line for each change
    #[arg(long, group = "until_end")]
    pub(crate) watch: bool,
    /// With --wait or --watch: wait no longer than this; the request stays in force [default: until it
    /// ends]
    #[arg(long, value_name = "DURATION", value_parser = Span::parse, requires = "until_end")]
    pub(crate) timeout: Option<Span>,
    /// Confirm the outage, with --coordinated or --allow-outage
    #[arg(short, long)]
    pub(crate) yes: bool,
}

impl RestartArgs {
    /// The request; `random_id` is called unless an id is given.
    pub(crate) fn request(
        &self,
        random_id: impl FnOnce() -> String,
        by: Option<String>,
    ) -> Request {
        let (strategy, target) = self.scope.strategy_and_target();
        Request {
            id: self.id.clone().unwrap_or_else(random_id),
            strategy,
            target,
            not_before: self.not_before,
            deadline: self.deadline,
            allow_unreplicated: self.allow_unreplicated.clone(),
            allow_outage: self.allow_outage,
            outside_windows: self.outside_windows,
            skip_rules: self.skip_rules.clone(),
            by,
        }
    }
}
