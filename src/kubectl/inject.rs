//! `inject` and `uninject`: reads and writes manifests. `stayput-inject` decides about the changes.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use schemars::JsonSchema;
use serde::Serialize;
use stayput_http::terminal::plain;
use stayput_inject::{Changed, Finding, Outcome};

use crate::args::{InjectArgs, ManifestsArg};
use crate::error::Exit;
use crate::printer::{Printer, write};

/// Why no manifests are written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InjectError {
    #[error("cannot read {}: {source}", shown(file))]
    Read { file: PathBuf, source: io::Error },
    #[error("{} is not UTF-8 in line {line}: save it as UTF-8", shown(file))]
    Encoding { file: PathBuf, line: usize },
    #[error("inject writes manifests: --output json is for inject --check")]
    NoJson,
    #[error("nothing is written, because of what was found")]
    Found,
    #[error("nothing is written: no StatefulSet in these manifests has a container {0}")]
    NoContainer(String),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl InjectError {
    /// Exit code of the error. A missing file is a wrong command line, as for `plan --snapshot`.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Read { .. } | Self::Encoding { .. } | Self::NoJson => Exit::Usage,
            Self::Found | Self::NoContainer(_) | Self::Output(_) => Exit::Failed,
        }
    }
}

/// One file, and the result for it.
pub(crate) struct Edited {
    /// Name of the file, for people.
    file: String,
    result: Result<Outcome, Vec<Finding>>,
}

impl Edited {
    /// Findings about the file.
    fn findings(&self) -> &[Finding] {
        match &self.result {
            Ok(outcome) => &outcome.notes,
            Err(findings) => findings,
        }
    }
}

/// Writes the manifests with the manager, or says what would change.
pub(crate) fn inject(args: &InjectArgs, printer: &Printer) -> Result<(), InjectError> {
    if printer.is_json() && !args.check {
        return Err(InjectError::NoJson);
    }
    let options = args.options();
    let is_for_programs = args.check && printer.is_json();
    let edited = each(&args.manifests, |text| stayput_inject::inject(text, &options))?;
    if is_for_programs {
        printer.page("", &InjectOutput::new(&edited))?
    } else {
        say(&edited)?
    }
    let done = all(edited)?;
    if !done.iter().any(|(_, outcome)| outcome.has_engine) {
        if !is_for_programs {
            no_engine(&done)?;
        }
        if let Some(name) = options.container {
            return Err(InjectError::NoContainer(name));
        }
    }
    if !args.check {
        Ok(write(&joined(&done))?)
    } else if is_for_programs {
        Ok(())
    } else {
        Ok(write(&summary(&done))?)
    }
}

/// Prints where an engine was looked for.
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
pub(crate) fn uninject(manifests: &ManifestsArg) -> Result<(), InjectError> {
    let edited = each(manifests, stayput_inject::uninject)?;
    say(&edited)?;
    Ok(write(&joined(&all(edited)?))?)
}

/// Edits all files.
fn each(
    manifests: &ManifestsArg,
    edit: impl Fn(&str) -> Result<Outcome, Vec<Finding>>,
) -> Result<Vec<Edited>, InjectError> {
    let stdin = [PathBuf::from("-")];
    let files = if manifests.files.is_empty() { &stdin } else { manifests.files.as_slice() };
    let one = |file: &PathBuf| Ok(Edited { file: shown(file), result: edit(&read(file)?) });
    files.iter().map(one).collect()
}

/// Prints the findings on stderr.
fn say(edited: &[Edited]) -> io::Result<()> {
    for one in edited {
        for finding in one.findings() {
            writeln!(io::stderr(), "{}", plain(&format!("{}: {finding}", one.file)))?;
        }
    }
    Ok(())
}

/// The results of all files, or an error if one of them has failed, so that stdout has all manifests
/// or none.
fn all(edited: Vec<Edited>) -> Result<Vec<(String, Outcome)>, InjectError> {
    let done = edited.into_iter().map(|one| match one.result {
        Ok(outcome) => Ok((one.file, outcome)),
        Err(_) => Err(InjectError::Found),
    });
    done.collect()
}

fn read(file: &Path) -> Result<String, InjectError> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        fs::read(file).map(|read| bytes = read)
    };
    read.map_err(|source| InjectError::Read { file: file.to_owned(), source })?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        InjectError::Encoding { file: file.to_owned(), line }
    })
}

fn shown(file: &Path) -> String {
    if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() }
}

/// One stream of all files. A single file keeps every byte.
fn joined(done: &[(String, Outcome)]) -> String {
    let mut all = String::new();
    for (_, outcome) in done {
        if all.is_empty() {
            all += &outcome.text;
            continue;
        }
        if !all.ends_with('\n') {
            all.push('\n');
        }
        let text = without_head(&outcome.text);
        if !text.starts_with("---") {
            all += "---\n";
        }
        all += &text;
    }
    all
}

/// A file as it can follow another one: a byte order mark and `%YAML` are for the beginning of a stream alone.
fn without_head(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let head = text.find("---").map_or("", |start| &text[..start]);
    let kept: String =
        head.split_inclusive('\n').filter(|line| !line.starts_with("%YAML")).collect();
    kept + &text[head.len()..]
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

/// `inject --check`: what would be changed, and what was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InjectOutput<'a> {
    /// True if manifests would be written: no finding is an error.
    possible: bool,
    /// The objects that would say something else than now; of files without an error.
    changed: Vec<InFile<'a, Changed>>,
    findings: Vec<InFile<'a, Finding>>,
}

// Something about a file. The description in the schema is that of `T`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Output")]
struct InFile<'a, T> {
    /// The file, or `stdin`.
    file: &'a str,
    #[serde(flatten)]
    item: &'a T,
}

impl<'a> InjectOutput<'a> {
    pub(crate) fn new(edited: &'a [Edited]) -> Self {
        let has_engine = |one: &Edited| one.result.as_ref().is_ok_and(|outcome| outcome.has_engine);
        let mut output = Self { possible: true, changed: Vec::new(), findings: Vec::new() };
        let mut without_engine = Vec::new();
        for one in edited {
            let file = one.file.as_str();
            output.findings.extend(one.findings().iter().map(|item| InFile { file, item }));
            let Ok(outcome) = &one.result else {
                output.possible = false;
                continue;
            };
            output.changed.extend(outcome.changed.iter().map(|item| InFile { file, item }));
            without_engine.extend(outcome.without_engine.iter().map(|item| InFile { file, item }));
        }
        if !edited.iter().any(has_engine) {
            output.findings.extend(without_engine);
        }
        output
    }
}
