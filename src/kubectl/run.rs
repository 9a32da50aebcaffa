//! Runs a command: from the command line to an exit code.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use stayput_api::Span;
use stayput_kube_access::cluster::crd_yaml;
use stayput_restart::{Outcome, Saved};
use tokio::time::timeout;

use crate::actions::{ActionResult, keep_stopped, requests};
use crate::args::{
    AnyCommand, Cli, ClustersArg, Command, CommonArgs, ManifestsCommand, PlanArgs, ProgramCommand,
    RestartArgs, SavedArg, ScopeArgs,
};
use crate::doctor::Verdict;
use crate::error::{Error, Exit};
use crate::format::now;
use crate::json::{AllOutput, HistoryOutput, NodeOutput, PlanOutput, StatusOutput};
use crate::printer::{Printer, write};
use crate::progress::Line;
use crate::session::Session;
use crate::snapshot::{DatedForecast, snapshot_from_file};
use crate::view::ClusterView;
use crate::watch::watch;
use crate::{
    complete, detach, diff, doctor, init, inject, options, runbook, selection, snapshot, text, ui,
};

/// Runs the program with `args`, the first of which is its own name.
///
/// Exit codes: 0 done; 1 refused or failed, or the restart that was waited for did not end as done, or
/// `doctor` has found errors; 2 apiserver or reconciler not reachable; 64 wrong usage; 124 not done in time.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if complete::is_asked(args.first()) {
        // Nobody reads an error of this.
        let _ = write(&complete::answer(definition(), args));
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors and go to stdout. If this cannot be written, nothing
            // can.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let options = options::given_in_shell(&cli.common);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Runtime);
    match runtime.and_then(|runtime| runtime.block_on(run(cli))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(&options),
    }
}

/// True if the command has output for programs.
const fn has_json(command: &AnyCommand) -> bool {
    match command {
        // The file has it.
        AnyCommand::Cluster(Command::Snapshot { file: Some(_), .. }) => false,
        AnyCommand::Cluster(_) | AnyCommand::Manifests(ManifestsCommand::Inject(_)) => true,
        AnyCommand::Manifests(ManifestsCommand::Uninject(_)) | AnyCommand::Program(_) => false,
    }
}

async fn run(cli: Cli) -> Result<(), Error> {
    if cli.common.output.is_some() && !has_json(&cli.command) {
        return Err(Error::NoJson);
    }
    match cli.command {
        AnyCommand::Cluster(command) => Box::pin(run_for_cluster(&cli.common, command)).await,
        AnyCommand::Manifests(ManifestsCommand::Inject(args)) => {
            Ok(inject::inject(&args, &Printer::new(&cli.common))?)
        }
        AnyCommand::Manifests(ManifestsCommand::Uninject(files)) => Ok(inject::uninject(&files)?),
        AnyCommand::Program(ProgramCommand::Runbook { code }) => {
            Ok(write(runbook::about(&code).unwrap_or_default())?)
        }
        AnyCommand::Program(ProgramCommand::Crd) => Ok(write(&crd_yaml()?)?),
        AnyCommand::Program(ProgramCommand::Completion { shell }) => Ok(completion(shell)?),
    }
}

/// Every command and option of `kubectl stayput`: man pages are made from it.
pub fn definition() -> clap::Command {
    Cli::command()
}

fn completion(shell: Shell) -> std::io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "kubectl-stayput", &mut script);
    // clap_complete 4.6 writes a program's name with a dash in two ways for bash, which then finds no
    // subcommand.
    write(&String::from_utf8_lossy(&script).replace("kubectl__subcmd__stayput", "kubectl__stayput"))
}

async fn run_for_cluster(common: &CommonArgs, command: Command) -> Result<(), Error> {
    let printer = Printer::new(common);
    // A saved snapshot needs no apiserver.
    match &command {
        Command::Plan(args) => {
            if let Some(file) = &args.saved.snapshot {
                return plan_in_snapshot(file, &args.scope, &printer);
            }
        }
        Command::Why { node, saved: SavedArg { snapshot: Some(file) }, .. } => {
            return why_in_snapshot(node, file, &printer);
        }
        _ => {}
    }
    let session = &Session::new(common).await?;
    match command {
        Command::Init(args) => {
            let report = init::init(session, &args).await?;
            printer.page(&text::init(&report), &report)?;
            report.problem().map_or(Ok(()), |problem| Err(Error::Incomplete(problem)))
        }
        Command::Status(args) => status(session, &args, &printer).await,
        Command::Plan(args) => plan(session, &args, &printer).await,
        Command::Snapshot { cluster, file, reconciler } => {
            let view = selection::view(session, cluster.name.as_deref()).await?;
            let address = reconciler.address.as_deref();
            let saved = snapshot::snapshot(session, address, &view).await?;
            save(&saved, file.as_deref())
        }
        Command::Diff(cluster) => {
            let diff = diff::read(session, cluster.name.as_deref()).await?;
            Ok(printer.page(&text::diff(&diff), &diff)?)
        }
        Command::Doctor(args) => {
            let examined = doctor::examine(session, &args).await?;
            printer.page(&text::doctor(&examined.clusters, printer.paint), &examined)?;
            match Verdict::of(examined.clusters.iter().flat_map(|one| &one.findings)) {
                Verdict::Good => Ok(()),
                Verdict::Bad => Err(Error::Unfit),
                Verdict::Unknown => Err(Error::NotExamined),
            }
        }
        Command::History(args) => history(session, &args, &printer).await,
        Command::Why { node, cluster, saved: _ } => {
            why(session, node, cluster.name.as_deref(), &printer).await
        }
        Command::Restart(args) => restart(session, *args, &printer).await,
        Command::Cancel { cluster, id } => {
            let name = cluster.name.as_deref();
            let report = requests::cancel(session, name, id.as_deref()).await?;
            Ok(printer.action(&report)?)
        }
        Command::Pause(cluster) => {
            Ok(printer.action(&requests::pause(session, cluster.name.as_deref()).await?)?)
        }
        Command::Resume(cluster) => {
            Ok(printer.action(&requests::resume(session, cluster.name.as_deref()).await?)?)
        }
        Command::Detach(args) => Ok(printer.action(&detach::detach(session, &args).await?)?),
        Command::Stop(args) => Ok(printer.action(&keep_stopped::stop(session, &args).await?)?),
        Command::Start(args) => Ok(printer.action(&keep_stopped::start(session, &args).await?)?),
        Command::Ui { cluster, port } => {
            Ok(ui::ui(session.clone(), cluster.name.as_deref(), port, &printer).await?)
        }
        Command::Watch { cluster, id, timeout } => {
            let print = |line: &Line| printer.progress(line);
            watch_until_done(session, cluster.name.as_deref(), id, timeout, print).await
        }
    }
}

async fn status(session: &Session, args: &ClustersArg, printer: &Printer) -> Result<(), Error> {
    if args.all_namespaces {
        let views = selection::views_everywhere(session).await?;
        let page = text::status_of_all(&views);
        return Ok(printer.page(&page, &AllOutput::new(&views, StatusOutput::new))?);
    }
    let view = selection::view(session, args.cluster.name.as_deref()).await?;
    let page = text::status(&view, now(), printer.paint);
    Ok(printer.page(&page, &StatusOutput::new(&view))?)
}

async fn history(session: &Session, args: &ClustersArg, printer: &Printer) -> Result<(), Error> {
    if args.all_namespaces {
        let views = selection::views_everywhere(session).await?;
        let page = text::history_of_all(&views);
        return Ok(printer.page(&page, &AllOutput::new(&views, HistoryOutput::new))?);
    }
    let view = selection::view(session, args.cluster.name.as_deref()).await?;
    Ok(printer.page(&text::history(&view), &HistoryOutput::new(&view))?)
}

async fn why(
    session: &Session,
    node: String,
    cluster: Option<&str>,
    printer: &Printer,
) -> Result<(), Error> {
    let nodes = [node];
    let view = selection::view_with_nodes(session, cluster, &nodes).await?;
    let [node] = nodes;
    let pod = view.pod_of_node(&node).cloned().unwrap_or_default();
    let page = text::why(&view, &pod, now(), printer.paint);
    Ok(printer.page(&page, &NodeOutput::why(&view.node(&node)))?)
}

/// Shows a dry run; without a snapshot, the status and the reason why there is no dry run.
async fn plan(session: &Session, args: &PlanArgs, printer: &Printer) -> Result<(), Error> {
    let view = selection::view(session, args.cluster.name.as_deref()).await?;
    // To a user who gives an address or a scope, the status alone is no answer.
    let needs_forecast = args.reconciler.address.is_some() || args.scope.is_given();
    let address = args.reconciler.address.as_deref();
    match snapshot::snapshot(session, address, &view).await {
        Ok(saved) => print_forecast(&view, &saved, &args.scope, printer),
        Err(error) if needs_forecast => Err(error.into()),
        Err(error) => {
            let why = options::into_quoted_commands(&error.to_string(), &view.options);
            let page = text::plan(&view, &why, printer.paint);
            Ok(printer.page(&page, &PlanOutput::new(&view, Err(&why)))?)
        }
    }
}

fn plan_in_snapshot(file: &Path, scope: &ScopeArgs, printer: &Printer) -> Result<(), Error> {
    let saved = snapshot_from_file(file)?;
    print_forecast(&ClusterView::from_snapshot(&saved), &saved, scope, printer)
}

fn print_forecast(
    view: &ClusterView,
    saved: &Saved,
    scope: &ScopeArgs,
    printer: &Printer,
) -> Result<(), Error> {
    let forecast = DatedForecast::new(saved, scope.dry_run().as_ref());
    let page = text::forecast(view, &forecast, printer.paint);
    printer.page(&page, &PlanOutput::new(view, Ok(&forecast)))?;
    if forecast.forecast.is_refused { Err(Error::WouldBeRefused) } else { Ok(()) }
}

fn why_in_snapshot(node: &str, file: &Path, printer: &Printer) -> Result<(), Error> {
    let saved = snapshot_from_file(file)?;
    let view = ClusterView::from_snapshot(&saved);
    let Some(pod) = view.pod_of_node(node) else {
        let known = view.node_names().collect();
        return Err(Error::NodeNotInSnapshot { node: node.to_owned(), known });
    };
    let forecast = DatedForecast::new(&saved, None);
    let page = text::why_in_snapshot(&view, pod, &forecast, printer.paint);
    Ok(printer.page(&page, &NodeOutput::why(&view.node(node)))?)
}

/// Requests a restart, and waits for its end if the user wants that.
async fn restart(session: &Session, args: RestartArgs, printer: &Printer) -> Result<(), Error> {
    let report = requests::restart(session, &args).await?;
    if !args.wait && !args.watch {
        printer.action(&report)?;
        let is_refused = report.output.result == ActionResult::WouldBeRefused;
        return if is_refused { Err(Error::WouldBeRefused) } else { Ok(()) };
    }
    printer.action_line(&report)?;
    // `--wait` prints the outcome, and why it may not come.
    let print = |line: &Line| {
        if args.watch || line.ended.is_some() || line.is_trouble {
            printer.progress(line)
        } else {
            Ok(())
        }
    };
    let cluster = report.output.cluster;
    watch_until_done(session, Some(&cluster), report.output.id, args.timeout, print).await
}

/// Watches a restart; an error unless it ends as done.
async fn watch_until_done(
    session: &Session,
    cluster: Option<&str>,
    id: Option<String>,
    limit: Option<Span>,
    print: impl FnMut(&Line) -> std::io::Result<()>,
) -> Result<(), Error> {
    // Before the first look nobody knows.
    let is_requested = Cell::new(true);
    let watching = async {
        let cluster = selection::cluster(session, cluster).await?;
        Ok::<_, Error>(watch(&session.client, &cluster, id, &is_requested, print).await?)
    };
    let ended = match limit {
        None => watching.await?,
        Some(limit) => {
            let ended = timeout(limit.to_duration(), watching).await;
            let late = |_| {
                let is_requested = is_requested.get();
                if is_requested { Error::TimedOut(limit) } else { Error::NotRequested(limit) }
            };
            ended.map_err(late)??
        }
    };
    if ended.outcome == Outcome::Done {
        Ok(())
    } else {
        Err(Error::RestartNotDone(Box::new(ended)))
    }
}

/// Writes a snapshot. A file that exists is never overwritten.
fn save(saved: &Saved, file: Option<&Path>) -> Result<(), Error> {
    let text = serde_json::to_string(saved).map_err(std::io::Error::from)? + "\n";
    let Some(file) = file else { return Ok(write(&text)?) };
    let created = File::create_new(file).and_then(|mut new| new.write_all(text.as_bytes()));
    created.map_err(|source| Error::SnapshotFile { file: file.to_owned(), source })?;
    let (size, name) = (text.len(), file.display());
    Ok(write(&format!(
        "saved {size} bytes in {name}; it holds no value of a Secret, but names: of the Secrets and \
         ConfigMaps of the config, of nodes, indices and users\n"
    ))?)
}
