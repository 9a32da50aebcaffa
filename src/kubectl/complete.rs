//! `kubectl stayput <TAB>`: kubectl runs `kubectl_complete-stayput`, which is this program by another
//! name, with the words of the line, the last of which is being typed. It reads lines as the Go library
//! cobra writes them: a word, a tab, its help; at the end a colon and a number for the shell.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::args::CommonArgs;
use crate::selection;
use crate::session::Session;
use crate::view::ClusterView;

/// The name by which kubectl asks.
const NAME: &str = "kubectl_complete-stayput";
/// For the shell: no names of files, the words are all there is.
const NO_FILES: u8 = 4;
/// For the shell: no space behind the word, since it is only the beginning of one.
const NO_SPACE: u8 = 2;

/// True if kubectl started the program to complete a command line.
pub(crate) fn is_asked(program: Option<&OsString>) -> bool {
    program.and_then(|path| Path::new(path).file_name()) == Some(OsStr::new(NAME))
}

/// The answer for kubectl. `words` begin with the program's own name.
pub(crate) fn answer(mut definition: Command, words: Vec<OsString>) -> String {
    let Some((_, before)) = words.split_last() else { return lines(&[]) };
    // The line is not finished, so that it may lack words; what is there says which cluster is meant.
    let partial = definition.clone().ignore_errors(true);
    if let Ok(matches) = partial.try_get_matches_from(before)
        && let Ok(common) = CommonArgs::from_arg_matches(&matches)
    {
        definition = with_names(definition, NameLookup { common, cluster: cluster(&matches) });
    }
    let last = words.len() - 1;
    // What cannot be completed gets no words: the shell shows no errors.
    lines(&complete(&mut definition, words, last, Some(Path::new("."))).unwrap_or_default())
}

/// The name of the cluster, if the line has one already.
fn cluster(matches: &ArgMatches) -> Option<String> {
    let (_, matches) = matches.subcommand()?;
    matches.try_get_one("cluster").ok().flatten().cloned()
}

/// The definition with completion by names of clusters and nodes for the commands about clusters.
fn with_names(definition: Command, names: NameLookup) -> Command {
    let names = Arc::new(names);
    definition.mut_subcommands(|command| match command.get_name() {
        // It asks no cluster.
        "inject" => command,
        _ => command.mut_args(|argument| match argument.get_id().as_str() {
            "cluster" => {
                let names = Arc::clone(&names);
                argument.add(ArgValueCandidates::new(move || candidates(names.clusters())))
            }
            "node" | "nodes" => {
                let names = Arc::clone(&names);
                argument.add(ArgValueCandidates::new(move || candidates(names.nodes())))
            }
            _ => argument,
        }),
    })
}

fn candidates(names: Vec<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn lines(candidates: &[CompletionCandidate]) -> String {
    let mut lines = String::new();
    let mut directive = NO_FILES;
    for candidate in candidates {
        let word = candidate.get_value().to_string_lossy();
        if word.ends_with('/') {
            directive = NO_FILES | NO_SPACE;
        }
        lines.push_str(&word);
        if let Some(help) = candidate.get_help() {
            let help = help.to_string();
            lines.push('\t');
            lines.push_str(help.lines().next().unwrap_or_default());
        }
        lines.push('\n');
    }
    lines + &format!(":{directive}\n")
}

/// Timeout of the apiserver's answer: a person waits with a finger on the key.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Looks up names at the apiserver.
struct NameLookup {
    common: CommonArgs,
    /// The cluster on the command line.
    cluster: Option<String>,
}

impl NameLookup {
    /// Names of all SearchClusters in the namespace.
    fn clusters(&self) -> Vec<String> {
        self.views().into_iter().map(|view| view.name).collect()
    }

    /// Names of the nodes of the cluster on the command line, or of all clusters in the namespace.
    fn nodes(&self) -> Vec<String> {
        let is_meant =
            |view: &ClusterView| self.cluster.as_ref().is_none_or(|name| *name == view.name);
        let views = self.views();
        views.iter().filter(|view| is_meant(view)).flat_map(ClusterView::node_names).collect()
    }

    /// All clusters in the namespace; empty if the apiserver does not answer.
    fn views(&self) -> Vec<ClusterView> {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
            return Vec::new();
        };
        let views = async {
            let session = Session::new(&self.common).await.ok()?;
            selection::views(&session).await.ok()
        };
        let views = runtime.block_on(async { timeout(ANSWER_TIMEOUT, views).await });
        views.ok().flatten().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::definition;

    /// The words and the number for the shell.
    fn asked(line: &str) -> (Vec<String>, String) {
        let words = [NAME].into_iter().chain(line.split(' ')).map(OsString::from).collect();
        let answer = answer(definition(), words);
        let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
        let directive = lines.pop().unwrap();
        let word = |line: String| line.split('\t').next().unwrap().to_owned();
        (lines.into_iter().map(word).collect(), directive)
    }

    #[test] // proves OPERATE-15
    fn commands_options_and_codes_need_no_apiserver() {
        let (commands, directive) = asked("");
        let all: Vec<String> =
            definition().get_subcommands().map(|one| one.get_name().to_owned()).collect();
        assert!(all.len() > 14 && all.iter().all(|one| commands.contains(one)), "{commands:?}");
        assert_eq!(directive, ":4");
        assert_eq!(asked("rest").0, ["restart"]);
        assert_eq!(asked("restart --coord").0, ["--coordinated"]);
        assert_eq!(asked("runbook quo").0, ["quorum"]);
        assert_eq!(asked("-o js").0, ["json"]);
        assert_eq!(asked("frobnicate --x").0, [""; 0]);
    }

    #[test]
    fn help_is_one_line_behind_a_tab() {
        let words = [NAME, "hist"].map(OsString::from).to_vec();
        assert_eq!(answer(definition(), words), "history\tShow the restarts that have ended\n:4\n");
    }

    #[test]
    fn only_that_name_asks() {
        let is = |name: &str| is_asked(Some(&OsString::from(name)));
        assert!(is("kubectl_complete-stayput") && is("/usr/bin/kubectl_complete-stayput"));
        assert!(!is("/usr/bin/kubectl-stayput") && !is_asked(None));
    }

    #[test]
    fn without_words_there_is_no_answer() {
        assert_eq!(answer(definition(), Vec::new()), ":4\n");
    }
}
