//! What the demo prints: steps, requests, answers, and what each answer proves. Colours on a
//! terminal.

use std::io::IsTerminal;

use serde_json::Value;
use stayput_api::{Problem, Status};

/// Writes to stdout.
pub(crate) struct Narrator {
    colours: bool,
    steps: u32,
}

impl Narrator {
    /// Colours only on a terminal, and not if NO_COLOR is set.
    pub(crate) fn new() -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colours, steps: 0 }
    }

    /// Begins a part.
    pub(crate) fn part(&self, title: &str) {
        println!("\n{}", self.paint("1", &format!("== {title} ==")));
    }

    /// Begins a step.
    pub(crate) fn step(&mut self, title: &str) {
        self.steps += 1;
        println!("\n{}", self.paint("1", &format!("{}. {title}", self.steps)));
    }

    /// Prints what is done, or the reason for it.
    pub(crate) fn note(&self, text: &str) {
        println!("   {text}");
    }

    /// Quotes what the engine or the manager printed.
    pub(crate) fn quote(&self, line: &str) {
        println!("   {}", self.paint("2", &format!("| {line}")));
    }

    /// Shows a request.
    pub(crate) fn request(&self, method: &str, target: &str, body: Option<&Value>) {
        let body = body.map(|body| format!(" {body}")).unwrap_or_default();
        println!("   {}", self.paint("36", &shorten(&format!("> {method} {target}{body}"))));
    }

    /// Shows an answer of the engine.
    pub(crate) fn answer(&self, status: u16, body: &Value) {
        println!("   {}", self.paint("36", &format!("< {status} {body}")));
    }

    /// Shows an answer of the manager that contains its status: the fields that the step is about.
    pub(crate) fn status(&self, code: u16, status: &Status) {
        println!("   {}", self.paint("36", &format!("< {code} {}", engine_facts(status))));
        let config = config_facts(status);
        if !config.is_empty() {
            println!("   {}", self.paint("36", &shorten(&format!("      {config}"))));
        }
    }

    /// Shows a refusal of the manager.
    pub(crate) fn problem(&self, problem: &Problem) {
        let line = format!("< {} {}: {}", problem.status, problem.code.as_str(), problem.detail);
        println!("   {}", self.paint("33", &shorten(&line)));
    }

    /// States what was proved.
    pub(crate) fn proved(&self, what: &str) {
        println!("   {} {what}", self.paint("32", "ok:"));
    }

    /// How many steps there were.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn engine_facts(status: &Status) -> String {
    let mut facts = format!("desired={} state={}", status.desired.as_str(), status.state.as_str());
    if let Some(ready) = status.ready {
        facts.push_str(&format!(" ready={ready}"));
    }
    if let (Some(exit), None) = (&status.last_exit, &status.run) {
        let code = exit.shell_code().map_or("?".to_owned(), |code| code.to_string());
        facts.push_str(&format!(" last_exit={code} ({})", exit.reason.as_str()));
    }
    facts
}

fn config_facts(status: &Status) -> String {
    let mut facts = Vec::new();
    if let Some(run) = &status.run {
        let checksum = run.checksum.as_deref().unwrap_or("unknown");
        facts.push(format!("run.checksum={checksum} ({})", run.config.as_str()));
    }
    if let Some(config) = &status.config {
        let checksum = config.checksum.as_deref().unwrap_or("unknown");
        facts.push(format!("config.checksum={checksum}"));
        facts.extend(config.drift.map(|drift| format!("config.drift={drift}")));
    }
    facts.join(" ")
}

/// Shortens every `sha256:` with its 64 digits, so that a reader can compare them.
fn shorten(line: &str) -> String {
    let mut parts = line.split("sha256:");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        short.push_str("sha256:");
        match digits {
            64 => short.push_str(&format!("{}...{}", &part[..8], &part[64..])),
            _ => short.push_str(part),
        }
    }
    short
}
