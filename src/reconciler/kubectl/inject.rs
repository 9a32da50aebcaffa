//! Manifests in, manifests out. What is done with them is decided in `stayput-inject`.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::args::{InjectArgs, ManifestsArg};
use super::exit::Exit;
use super::json::InjectOutput;
use super::printer::{Printer, write};
use stayput_inject::{Changed, Finding, Outcome};
use stayput_net::terminal::plain;

/// Why no manifests are written.
#[derive(Debug, thiserror::Error)]
pub(super) enum InjectError {
    #[error("cannot read {}: {source}", shown(file))]
    Read { file: PathBuf, source: io::Error },
    #[error("nothing is written, because of what was found")]
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

/// One file, and what became of it.
pub(super) struct Edited {
    /// Its name, for people.
    pub(super) file: String,
    pub(super) result: Result<Outcome, Vec<Finding>>,
}

impl Edited {
    /// What there is to say about it.
    pub(super) fn findings(&self) -> &[Finding] {
        match &self.result {
            Ok(outcome) => &outcome.notes,
            Err(findings) => findings,
        }
    }
}

/// Writes the manifests with the manager, or says what that would be.
pub(super) fn inject(args: &InjectArgs, printer: &Printer) -> Result<(), InjectError> {
    let options = args.options();
    let is_for_programs = args.check && printer.is_json();
    let edited = each(&args.manifests, |text| stayput_inject::inject(text, &options))?;
    match is_for_programs {
        true => printer.page("", &InjectOutput::new(&edited))?,
        false => say(&edited)?,
    }
    let done = all(edited)?;
    if done.iter().all(|(_, outcome)| outcome.changed.is_empty()) {
        if !is_for_programs {
            no_engine(&done)?;
        }
        if let Some(name) = options.container {
            return Err(InjectError::NoContainer(name));
        }
    }
    match args.check {
        true if is_for_programs => Ok(()),
        true => Ok(write(&summary(&done))?),
        false => Ok(write(&joined(&done))?),
    }
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
    let edited = each(manifests, stayput_inject::uninject)?;
    say(&edited)?;
    Ok(write(&joined(&all(edited)?))?)
}

/// Goes through all files.
fn each(
    manifests: &ManifestsArg,
    edit: impl Fn(&str) -> Result<Outcome, Vec<Finding>>,
) -> Result<Vec<Edited>, InjectError> {
    let stdin = [PathBuf::from("-")];
    let files = if manifests.files.is_empty() { &stdin } else { manifests.files.as_slice() };
    let one = |file: &PathBuf| {
        let text = read(file).map_err(|source| InjectError::Read { file: file.clone(), source })?;
        Ok(Edited { file: shown(file), result: edit(&text) })
    };
    files.iter().map(one).collect()
}

/// Says what was found, on stderr.
fn say(edited: &[Edited]) -> io::Result<()> {
    for one in edited {
        for finding in one.findings() {
            writeln!(io::stderr(), "{}", plain(&format!("{}: {finding}", one.file)))?;
        }
    }
    Ok(())
}

/// Nothing comes back if one of them has failed, so that stdout has all manifests or none.
fn all(edited: Vec<Edited>) -> Result<Vec<(String, Outcome)>, InjectError> {
    let done = edited.into_iter().map(|one| match one.result {
        Ok(outcome) => Ok((one.file, outcome)),
        Err(_) => Err(InjectError::Found),
    });
    done.collect()
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
