//! The status for people: one fact on each line.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, SystemTime};

use stayput_api::{Archive, Config, ConfigChoice, Desired, Exit, Reason, Run, State, Status};
use stayput_http::terminal::plain;

/// The whole status, each line with its end.
pub(super) fn status(status: &Status, now: SystemTime) -> String {
    let mut page = Page { text: String::new(), now };
    page.fact("state", state(status));
    page.fact("since", page.when(&status.since));
    page.fact("desired", status.desired.as_str());
    if let Some(why) = &status.reason {
        page.fact("reason", format!("{} ({})", why.message, why.code));
    }
    if let Some(resume) = &status.resume {
        page.fact("resumes", page.when(&resume.at));
        if let Some(checksum) = &resume.checksum {
            page.fact("", format!("with {checksum}, mounted or last good"));
        }
    }
    if let Some(error) = &status.ready_error {
        page.fact("not ready", error);
    }
    let pod = &status.manager.pod;
    if let Some(name) = &pod.name {
        let namespace = pod.namespace.as_deref().unwrap_or("?");
        let uid = pod.uid.as_deref().unwrap_or("not known");
        page.fact("pod", format!("{namespace}/{name}, uid {uid}"));
    }
    if let Some(run) = &status.run {
        page.fact("run", format!("{}, pid {}", run.id, run.pid));
        page.fact("started", page.when(&run.started_at));
        let checksum = run.checksum.as_deref().unwrap_or(if run.config_uncertain {
            "not certain: the mounted config changed while the engine read it"
        } else {
            "not known"
        });
        if status.config.is_some() {
            page.fact("runs with", format!("{checksum} ({})", run.config.as_str()));
        }
    }
    if let Some(Archive { path, used }) = &status.archive {
        let used = if *used { "used" } else { "not used: the engine starts slower" };
        page.fact("archive", format!("{path}, {used}"));
    }
    if let Some(config) = &status.config {
        page.config(config, status.run.as_ref());
    }
    if let Some(exit) = &status.last_exit {
        page.exit(exit);
    }
    if let Some(request) = &status.last_request {
        let verdict = if request.accepted { "accepted" } else { "refused" };
        let what = format!("{} #{}, {verdict}", request.kind.as_str(), request.sequence);
        page.fact("last request", format!("{what}, by {}", request.by));
        page.fact("", page.when(&request.at));
    }
    page.fact("starts", status.starts.to_string());
    page.fact("sequence", status.sequence.to_string());
    let manager = &status.manager;
    page.fact("manager", format!("stayput {}, pid {}", manager.version, manager.pid));
    page.fact("", page.when(&manager.since));
    if !manager.durable {
        page.fact("", "NOT DURABLE: the last request would not survive a crash now");
    }
    page.text
}

/// The status on one line: the state and the other important facts.
pub(super) fn summary(status: &Status) -> String {
    plain(&line(status)).into_owned()
}

fn line(status: &Status) -> String {
    let mut text = state(status);
    let usual = match status.state {
        State::Stopped | State::Stopping | State::Killing => Some(Desired::Stopped),
        State::Starting | State::Running | State::Backoff => Some(Desired::Running),
        State::Failed | State::Stuck => None,
    };
    if usual != Some(status.desired) {
        let _ = write!(text, ", desired {}", status.desired.as_str());
    }
    match (&status.run, &status.last_exit) {
        (Some(run), _) => {
            let _ = write!(text, ", pid {}", run.pid);
        }
        (None, Some(exit)) => {
            let _ = write!(text, ", ended with {}", ended(exit));
        }
        (None, None) => {}
    }
    if status.config.as_ref().is_some_and(|config| config.drift == Some(true)) {
        text.push_str(", another config is mounted");
    }
    if let Some(why) = &status.reason {
        let _ = write!(text, ": {}", why.message);
    }
    if let Some(error) = &status.ready_error {
        let _ = write!(text, "; not ready: {error}");
    }
    text
}

/// Prints the summary of a status whenever it differs from the one before.
#[derive(Debug, Default)]
pub(super) struct ChangePrinter {
    last: Option<String>,
}

impl ChangePrinter {
    /// Prints time and summary, if the summary is new.
    pub(super) fn print(&mut self, status: &Status, out: &mut impl io::Write) -> io::Result<()> {
        let line = summary(status);
        let compared = if status.state == State::Stopped {
            // Who requested the stop last, and when, is no change of a stopped engine.
            let why = status.reason.clone().map(|why| Reason { message: String::new(), ..why });
            let code = why.as_ref().map(|why| why.code.clone()).unwrap_or_default();
            summary(&Status { reason: why, ..status.clone() }) + &code
        } else {
            line.clone()
        };
        if self.last.as_ref() == Some(&compared) {
            return Ok(());
        }
        writeln!(out, "{}  {line}", humantime::format_rfc3339_seconds(SystemTime::now()))?;
        self.last = Some(compared);
        out.flush()
    }
}

fn state(status: &Status) -> String {
    let name = status.state.as_str();
    match (status.state, status.ready) {
        (State::Running, Some(true)) => format!("{name}, ready"),
        (State::Running, Some(false)) => format!("{name}, NOT READY"),
        (_, _) => name.to_owned(),
    }
}

fn ended(exit: &Exit) -> String {
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "code not known".into(),
    };
    format!("{how} ({})", exit.reason.as_str())
}

struct Page {
    text: String,
    now: SystemTime,
}

impl Page {
    /// Adds one line; an empty name continues the fact above.
    fn fact(&mut self, name: &str, value: impl AsRef<str>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name:<14}{}", plain(value.as_ref()));
    }

    fn config(&mut self, config: &Config, run: Option<&Run>) {
        let live = config.files.iter().filter(|file| file.live).count();
        let files = match config.files.len() - live {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let checksum = config.checksum.as_deref().unwrap_or("not known, see below");
        self.fact("mounted", format!("{checksum} ({files}, {live} live)"));
        match config.drift {
            Some(true) => self.fact("drift", drift_advice(run)),
            Some(false) => self.fact("drift", "no"),
            None => {}
        }
        if let Some(last_good) = &config.last_good {
            self.fact("last good", last_good);
        }
        for error in &config.errors {
            self.fact("config error", error);
        }
    }

    fn exit(&mut self, exit: &Exit) {
        let took = humantime::format_duration(Duration::from_millis(exit.took_ms));
        let ran = rounded(Duration::from_millis(exit.ran_ms));
        let times = match exit.shell_code() {
            Some(_) => format!("took {took}, had run {ran}"),
            None => format!("had run at most {ran}"),
        };
        self.fact("last exit", format!("{}, {times}", ended(exit)));
        self.fact("", self.when(&exit.at));
        for (what, processes) in [("had to end", &exit.stragglers), ("left alone", &exit.strangers)]
        {
            for process in processes {
                self.fact("", format!("{what} pid {}: {}", process.pid, process.command));
            }
        }
    }

    /// A time of the status, and how long ago that is.
    fn when(&self, time: &str) -> String {
        match humantime::parse_rfc3339(time).map(|then| self.now.duration_since(then)) {
            Ok(Ok(age)) => format!("{time} ({} ago)", rounded(age)),
            // Our clock and the manager's may differ.
            Ok(Err(ahead)) => format!("{time} (in {})", rounded(ahead.duration())),
            Err(_) => time.to_owned(),
        }
    }
}

/// Advice for an engine that runs with another config than the mounted one.
fn drift_advice(run: Option<&Run>) -> &'static str {
    match run.map(|run| run.config) {
        // A plain restart would use the config that the engine was rolled back from.
        Some(ConfigChoice::LastGood) => {
            "YES: the engine runs with the last good config; repair the mounted one before a restart"
        }
        Some(ConfigChoice::Mounted) | None => {
            "YES: the engine runs with another config; restart it to use the mounted one"
        }
    }
}

/// A length of time, rounded down: from an hour on without seconds, from a day on without minutes.
fn rounded(length: Duration) -> String {
    let seconds = length.as_secs();
    let kept = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        86_400.. => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(Duration::from_secs(kept)).to_string()
}

#[cfg(test)]
mod tests;
