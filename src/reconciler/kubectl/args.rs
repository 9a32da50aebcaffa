//! What can be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use stayput_api::Span;
use stayput_restart::{Request, Strategy, Target, Time};

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 refused or failed, or the restart did not end as done; 2 apiserver or \
reconciler not reachable; 64 usage; 124 not done in time.";

/// Restarts Elasticsearch and OpenSearch clusters in place, and says what is going on
#[derive(Debug, Parser)]
#[command(name = "kubectl-stayput", bin_name = "kubectl stayput", version, after_help = AFTER_HELP)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Namespace of the SearchCluster [default: the context's]
    #[arg(short, long, global = true, value_name = "NAMESPACE", help_heading = "Kubernetes")]
    pub(super) namespace: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", help_heading = "Kubernetes")]
    pub(super) context: Option<String>,
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Kubernetes")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Print for programs: schema in proto/kubectl-stayput.schema.json
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub(super) output: Option<Format>,
    /// Print without colors, as when NO_COLOR is set
    #[arg(long, global = true)]
    pub(super) no_color: bool,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One JSON object; `watch` prints one a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what is going on, and what it waits for
    Status(Which),
    /// Show a dry run: the steps of a restart, and which rule keeps whom from going
    Plan(Box<PlanArgs>),
    /// Show what one node waits for, and how its last restart ended
    Why {
        /// Name of the node
        node: String,
        #[command(flatten)]
        of: Of,
        /// Look at what was saved with `snapshot`, and ask nobody
        #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
        snapshot: Option<PathBuf>,
    },
    /// Save all that decisions are made from, for a bug report; nothing secret is in it
    Snapshot {
        #[command(flatten)]
        which: Which,
        /// Where to [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        eye: Eye,
    },
    /// Show the restarts that are over
    History(Which),
    /// Ask for a restart
    Restart(Box<RestartArgs>),
    /// Withdraw a restart: no further node is stopped, stopped ones are finished
    Cancel {
        #[command(flatten)]
        which: Which,
        /// The restart [default: the one under way, or else the one that waits]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Stop nodes and keep them stopped; their pods stay
    Stop(NodesArgs),
    /// Start nodes that were stopped with `stop`
    Start(NodesArgs),
    /// Follow a restart to its end, with a line for each change
    Watch {
        #[command(flatten)]
        which: Which,
        /// The restart [default: the one under way, or else the next]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        /// How long to follow it [default: to its end]
        #[arg(long, value_name = "TIME", value_parser = Span::parse)]
        timeout: Option<Span>,
    },
}

/// Which SearchCluster.
#[derive(Debug, Args)]
pub(super) struct Which {
    /// Name of the SearchCluster; not needed if the namespace has only one
    #[arg(value_name = "CLUSTER")]
    pub(super) cluster: Option<String>,
}

/// Which SearchCluster, where nodes are named.
#[derive(Debug, Args)]
pub(super) struct Of {
    /// Name of the SearchCluster, if nodes of several bear the name
    #[arg(long, value_name = "NAME")]
    pub(super) cluster: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct NodesArgs {
    /// Names of nodes
    #[arg(value_name = "NODE", required = true)]
    pub(super) nodes: Vec<String>,
    #[command(flatten)]
    pub(super) of: Of,
    /// Only say what would be done, and what it costs
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Where what nobody else can tell is asked.
#[derive(Debug, Args)]
pub(super) struct Eye {
    /// Where the reconciler shows what it sees [default: http://127.0.0.1:9198]
    #[arg(long, value_name = "URL", env = "STAYPUT_RECONCILER")]
    pub(super) reconciler: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) which: Which,
    #[command(flatten)]
    pub(super) meant: Meant,
    #[command(flatten)]
    pub(super) eye: Eye,
    /// Look at what was saved with `snapshot`, and ask nobody
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    pub(super) snapshot: Option<PathBuf>,
}

/// Which restart is meant.
#[derive(Debug, Args)]
pub(super) struct Meant {
    /// Stop all nodes, then start them: an outage
    #[arg(long)]
    coordinated: bool,
    /// Only this node; repeatable
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Only nodes with this role
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Only nodes in this zone
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
}

impl Meant {
    /// How, and which nodes.
    pub(super) fn split(&self) -> (Strategy, Target) {
        let strategy = if self.coordinated { Strategy::Coordinated } else { Strategy::Rolling };
        let mut nodes = self.nodes.clone();
        nodes.sort();
        nodes.dedup();
        (strategy, Target { nodes, role: self.role.clone(), zone: self.zone.clone() })
    }

    /// Whether anything was said.
    pub(super) fn is_given(&self) -> bool {
        self.split() != (Strategy::Rolling, Target::default())
    }
}

#[derive(Debug, Args)]
pub(super) struct RestartArgs {
    #[command(flatten)]
    pub(super) which: Which,
    #[command(flatten)]
    pub(super) meant: Meant,
    #[command(flatten)]
    pub(super) eye: Eye,
    /// Stop no node earlier, 2026-11-21T03:00:00Z
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    not_before: Option<Time>,
    /// Stop no further node later than this after the start
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    deadline: Option<Span>,
    /// Id of the request, so that asking twice is asking once [default: a random one]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only say what would be asked, and in which order nodes would be restarted
    #[arg(long, conflicts_with_all = ["wait", "watch"])]
    pub(super) dry_run: bool,
    /// Return when the restart is over
    #[arg(long)]
    pub(super) wait: bool,
    /// Follow it to its end, with a line for each change
    #[arg(long, conflicts_with = "wait")]
    pub(super) watch: bool,
    /// How long to wait for its end; what was asked for stands [default: to its end]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub(super) timeout: Option<Span>,
    /// An outage is meant: do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
}

impl RestartArgs {
    /// What is asked for; the id is `fresh` unless one is given.
    pub(super) fn request(&self, fresh: impl FnOnce() -> String, by: Option<String>) -> Request {
        let (strategy, target) = self.meant.split();
        Request {
            id: self.id.clone().unwrap_or_else(fresh),
            strategy,
            target,
            not_before: self.not_before,
            deadline: self.deadline,
            by,
        }
    }
}
