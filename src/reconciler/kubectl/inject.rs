//! Manifests in, manifests out. What is done with them is decided in `stayput-inject`.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::args::{InjectArgs, ManifestsArg};
use super::exit::Exit;
use super::printer::write;
use stayput_inject::{Changed, Finding, Outcome};
use stayput_net::terminal::plain;

/// Why no manifests are written.
#[derive(Debug, thiserror::Error)]
pub(super) enum InjectError {
    #[error("cannot read {}: {source}", shown(file))]
    Read { file: PathBuf, source: io::Error },
    #[error("nothing is written, because of what is said above")]
    Found,
    #[error("nothing is written: no StatefulSet in these manifests has a container {0}")]
    NoContainer(String),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl InjectError {
    /// A file that is not there is a wrong command line, as for `plan --snapshot`.
    pub(super) const fn exit(&self) -> Exit {
        match self {
            Self::Read { .. } => Exit::Usage,
            Self::Found | Self::NoContainer(_) | Self::Output(_) => Exit::Failed,
        }
    }
}

/// Writes the manifests with the manager, or says what that would be.
pub(super) fn inject(args: &InjectArgs) -> Result<(), InjectError> {
    let options = args.options();
    let done = each(&args.manifests, |text| stayput_inject::inject(text, &options))?;
    if done.iter().all(|(_, outcome)| outcome.changed.is_empty()) {
        no_engine(&done)?;
        if let Some(name) = options.container {
            return Err(InjectError::NoContainer(name));
        }
    }
    if args.check {
        return Ok(write(&summary(&done))?);
    }
    Ok(write(&joined(&done))?)
}

/// Says where an engine was looked for.
fn no_engine(done: &[(String, Outcome)]) -> io::Result<()> {
    for (file, outcome) in done {
        for finding in &outcome.without_engine {
            writeln!(io::stderr(), "{}", plain(&format!("{file}: {finding}")))?;
        }
    }
    writeln!(
        io::stderr(),
        "note: no engine was found that can be changed; the manifests stay as they are"
    )
}

/// Writes the manifests without the manager.
pub(super) fn uninject(manifests: &ManifestsArg) -> Result<(), InjectError> {
    Ok(write(&joined(&each(manifests, stayput_inject::uninject)?))?)
}

/// Goes through all files. What was found goes to stderr. Nothing comes back if one of them fails, so
/// that stdout has all manifests or none.
fn each(
    manifests: &ManifestsArg,
    edit: impl Fn(&str) -> Result<Outcome, Vec<Finding>>,
) -> Result<Vec<(String, Outcome)>, InjectError> {
    let stdin = [PathBuf::from("-")];
    let files = if manifests.files.is_empty() { &stdin } else { manifests.files.as_slice() };
    let mut done = Vec::new();
    let mut found = Vec::new();
    for file in files {
        let text = read(file).map_err(|source| InjectError::Read { file: file.clone(), source })?;
        let findings = match edit(&text) {
            Ok(outcome) => {
                let notes = outcome.notes.clone();
                done.push((shown(file), outcome));
                notes
            }
            Err(findings) => findings,
        };
        found.extend(findings.iter().map(|finding| format!("{}: {finding}", shown(file))));
    }
    for line in found {
        writeln!(io::stderr(), "{}", plain(&line))?;
    }
    if done.len() < files.len() { Err(InjectError::Found) } else { Ok(done) }
}

fn read(file: &Path) -> io::Result<String> {
    if file != Path::new("-") {
        return fs::read_to_string(file);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

fn shown(file: &Path) -> String {
    if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() }
}

/// One stream of all files. A single file keeps every byte.
fn joined(done: &[(String, Outcome)]) -> String {
    let mut all = String::new();
    for (_, outcome) in done {
        if !all.is_empty() {
            if !all.ends_with('\n') {
                all.push('\n');
            }
            if !outcome.text.starts_with("---") {
                all += "---\n";
            }
        }
        all += &outcome.text;
    }
    all
}

fn summary(done: &[(String, Outcome)]) -> String {
    let changed: Vec<&Changed> = done.iter().flat_map(|(_, outcome)| &outcome.changed).collect();
    if changed.is_empty() {
        return "nothing would be changed\n".to_owned();
    }
    let mut text = String::new();
    for changed in changed {
        text += &format!("{}\n", plain(&changed.object));
        for edit in &changed.edits {
            text += &format!("  {}\n", plain(edit));
        }
    }
    text
}
