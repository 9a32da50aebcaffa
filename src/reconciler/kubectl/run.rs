//! From the command line to an exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use tokio::time::timeout;

use super::ahead::{Ahead, Planned};
use super::args::{Cli, Command, Common};
use super::connect::Session;
use super::failure::{Failure, USAGE};
use super::follow::{follow, now};
use super::output::{HistoryOutput, LineOutput, NodeOutput, PlanOutput, StatusOutput};
use super::progress::Line;
use super::text::{Paint, span, stamp};
use super::view::View;
use super::{act, ahead, find, pages, reconciler};
use stayput_api::Span;
use stayput_net::terminal::plain;
use stayput_restart::{HistoryEntry, Outcome, Saved};

/// Runs the program with `args`, the first of which is its own name.
///
/// Exit codes: 0 done; 1 refused or failed, or the restart that was waited for did not end as done;
/// 2 apiserver not reachable; 64 usage; 124 not done in time.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and go to stdout. Where neither can be written,
            // there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot begin: {error}")));
    let outcome = runtime.and_then(|runtime| runtime.block_on(command(cli)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn command(cli: Cli) -> Result<(), Failure> {
    let mut out = Out::new(&cli.common);
    match &cli.command {
        // What was saved needs no apiserver.
        Command::Plan(args) if args.snapshot.is_some() => {
            return out.planned(&ahead::plan(None, args).await?);
        }
        Command::Why { node, snapshot: Some(file), .. } => return out.why_then(node, file),
        _ => {}
    }
    let session = Session::new(&cli.common).await?;
    let session = &session;
    match cli.command {
        Command::Status(which) => {
            let view = find::view(session, which.cluster.as_deref()).await?;
            out.show(pages::status(&view, now(), out.paint), &StatusOutput::of(&view))
        }
        Command::Plan(args) => out.planned(&ahead::plan(Some(session), &args).await?),
        Command::Snapshot { which, file, eye } => {
            let view = find::view(session, which.cluster.as_deref()).await?;
            let saved = reconciler::snapshot(eye.reconciler.as_deref(), &view).await?;
            save(&saved, file.as_deref())
        }
        Command::History(which) => {
            let view = find::view(session, which.cluster.as_deref()).await?;
            out.show(pages::history(&view), &HistoryOutput::of(&view))
        }
        Command::Why { node, of, snapshot: _ } => {
            let nodes = [node];
            let view = find::view_with(session, of.cluster.as_deref(), &nodes).await?;
            let [node] = nodes;
            let pod = view.node(&node).cloned().unwrap_or_default();
            out.show(pages::why(&view, &pod, now(), out.paint), &NodeOutput::of(&view, &node))
        }
        Command::Restart(args) => {
            let (told, _) = act::restart(session, &args).await?;
            let id = told.output.id.clone();
            let cluster = told.output.cluster.clone();
            let quiet = args.wait;
            out.told(told, args.wait || args.watch)?;
            if args.wait || args.watch {
                watch(session, Some(&cluster), id, args.timeout, quiet, &mut out).await?;
            }
            Ok(())
        }
        Command::Cancel { which, id } => {
            let told = act::cancel(session, which.cluster.as_deref(), id.as_deref()).await?;
            out.told(told, false)
        }
        Command::Stop(args) => out.told(act::stop(session, &args).await?, false),
        Command::Start(args) => out.told(act::start(session, &args).await?, false),
        Command::Watch { which, id, timeout } => {
            watch(session, which.cluster.as_deref(), id, timeout, false, &mut out).await
        }
    }
}

/// Follows a restart, and fails unless it ends as done.
async fn watch(
    session: &Session,
    cluster: Option<&str>,
    id: Option<String>,
    patience: Option<Span>,
    quiet: bool,
    out: &mut Out,
) -> Result<(), Failure> {
    let cluster = find::cluster(session, cluster).await?;
    let tell = |line: &Line| if quiet && line.ended.is_none() { Ok(()) } else { out.line(line) };
    let following = follow(&session.client, &cluster, id, tell);
    let ended = match patience {
        None => following.await?,
        Some(patience) => timeout(patience.to_duration(), following).await.map_err(|_| {
            Failure::TimedOut(format!(
                "not over after {}; what was asked for stands",
                span(patience)
            ))
        })??,
    };
    judge(&ended)
}

fn judge(ended: &HistoryEntry) -> Result<(), Failure> {
    match ended.outcome {
        Outcome::Done => Ok(()),
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => {
            let reason = if ended.reason.is_empty() { "-" } else { &ended.reason };
            Err(Failure::NotDone(format!(
                "restart {} ended as {}: {reason}",
                ended.id,
                ended.outcome.as_str()
            )))
        }
    }
}

/// Where and how to print.
struct Out {
    paint: Paint,
    json: bool,
}

impl Out {
    fn new(common: &Common) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = !common.no_color && !unwanted && io::stdout().is_terminal();
        Self { paint: Paint { colored }, json: common.output.is_some() }
    }

    fn show(&self, page: String, output: &impl Serialize) -> Result<(), Failure> {
        let text = if self.json { json(serde_json::to_string_pretty(output))? } else { page };
        write(&text)?;
        Ok(())
    }

    /// A dry run, or what the reconciler has said last.
    fn planned(&self, planned: &Planned) -> Result<(), Failure> {
        let Planned { view, ahead } = planned;
        let page = match ahead {
            Ok(ahead) => pages::ahead(view, ahead, self.paint),
            Err(why) => pages::plan(view, why, self.paint),
        };
        self.show(page, &PlanOutput::of(view, ahead.as_ref().ok()))
    }

    /// One node, at the moment of a snapshot.
    fn why_then(&self, node: &str, file: &Path) -> Result<(), Failure> {
        let saved = reconciler::saved(file)?;
        let view = View::replayed(&saved);
        let Some(pod) = view.node(node) else {
            let all: Vec<String> = view.node_names().collect();
            let all = all.join(", ");
            return Err(Failure::Failed(format!("no node {node} was seen; there are: {all}")));
        };
        let ahead = Ahead::of(&saved, None);
        let page = pages::why_then(&view, pod, &ahead, self.paint);
        self.show(page, &NodeOutput::of(&view, node))
    }

    /// What a command did; among lines, as a line.
    fn told(&self, told: act::Told, among_lines: bool) -> Result<(), Failure> {
        if self.json && among_lines {
            write(&json(serde_json::to_string(&told.output))?)?;
            return Ok(());
        }
        self.show(told.page, &told.output)
    }

    fn line(&self, line: &Line) -> io::Result<()> {
        if self.json {
            return write(&json(serde_json::to_string(&LineOutput::of(line)))?);
        }
        let text = self.paint.word(line.tone, &line.text);
        let node = line.node.as_ref().map(|node| format!("{}  ", plain(node)));
        write(&format!("{}  {}{text}\n", stamp(line.time), node.unwrap_or_default()))
    }
}

/// Writes a snapshot; one that is there already stays.
fn save(saved: &Saved, file: Option<&Path>) -> Result<(), Failure> {
    let text = json(serde_json::to_string(saved))?;
    let Some(file) = file else { return Ok(write(&text)?) };
    let name = file.display();
    let made = std::fs::File::create_new(file).and_then(|mut made| made.write_all(text.as_bytes()));
    made.map_err(|error| Failure::Failed(format!("{name} cannot be written: {error}")))?;
    write(&format!(
        "saved {} bytes in {name}; nothing secret is in it, but names are\n",
        text.len()
    ))?;
    Ok(())
}

fn json(text: serde_json::Result<String>) -> io::Result<String> {
    Ok(text? + "\n")
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}
