//! Runs the shipped `stayput` as PID 1 of a PID namespace, as in a container. When the namespace's
//! first process ends, the kernel ends all others: no test leaves a process behind.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::api::Api;
use super::namespace::namespace;
use super::namespace_processes::{NamespaceProcess, namespace_processes};
use super::programs::stayput;
use super::wait::eventually;

/// Nobody listens there. Without it an engine counts as ready after ten seconds.
pub(crate) const NEVER_READY: [&str; 2] = ["--ready", "tcp://127.0.0.1:9"];

/// Becomes uid 1000 for good, as in a pod of the restricted profile.
pub(crate) const AS_ENGINE: [&str; 5] =
    ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--no-new-privs"];
/// Root as in a container: no SYS_PTRACE, so that the environment of another uid's process cannot
/// be read.
pub(crate) const AS_CONTAINED_ROOT: [&str; 2] =
    ["setpriv", "--bounding-set=-sys_ptrace,-sys_admin,-sys_resource"];

/// What to run.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// A directory that the manager may write to.
    pub(crate) work: PathBuf,
    /// Put in front of `stayput`, such as [`AS_ENGINE`].
    pub(crate) wrapper: Vec<String>,
    /// The `stayput` to run.
    pub(crate) program: OsString,
    /// `run`, or another one that runs an engine.
    pub(crate) subcommand: &'static str,
    /// Its options.
    pub(crate) options: Vec<String>,
    pub(crate) variables: Vec<(String, OsString)>,
    /// The engine's command.
    pub(crate) command: Vec<OsString>,
}

impl Launch {
    /// A manager of uid 1000 with a socket and a state directory in `work`.
    pub(crate) fn new<C: Into<OsString>>(
        work: &Path,
        command: impl IntoIterator<Item = C>,
    ) -> Self {
        let at = |name: &str| work.join(name).to_str().expect("UTF-8").to_owned();
        let options = ["--log-format", "text", "--log-level", "debug", "--socket", &at("s.sock")];
        let mut options: Vec<String> = options.map(str::to_owned).into();
        options.extend(["--state-dir".to_owned(), at("state")]);
        Self {
            work: work.to_owned(),
            wrapper: AS_ENGINE.map(str::to_owned).into(),
            program: stayput(),
            subcommand: "run",
            options,
            variables: vec![],
            command: command.into_iter().map(Into::into).collect(),
        }
    }

    pub(crate) fn wrapped<const N: usize>(mut self, wrapper: [&str; N]) -> Self {
        self.wrapper = wrapper.map(str::to_owned).into();
        self
    }

    pub(crate) fn options<O: Into<String>>(mut self, options: impl IntoIterator<Item = O>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// The same with an engine that never counts as ready, and so stays `starting`.
    pub(crate) fn never_ready(self) -> Self {
        self.options(NEVER_READY)
    }

    /// The same with its socket at another place.
    pub(crate) fn socket(mut self, path: &Path) -> Self {
        let position = self.options.iter().position(|option| option == "--socket");
        self.options[position.expect("an option") + 1] = path.to_str().expect("UTF-8").to_owned();
        self
    }

    /// The same with another `--on-exit`.
    pub(crate) fn on_exit(mut self, what: &str) -> Self {
        if let Some(position) = self.options.iter().position(|option| option == "--on-exit") {
            self.options.drain(position..position + 2);
        }
        self.options(["--on-exit", what])
    }

    /// Starts it and waits until it answers.
    pub(crate) fn start(&self) -> Manager {
        let mut manager = self.spawn();
        eventually("the manager answers", || {
            let ended = manager.outer.try_wait().expect("unshare is ours");
            assert_eq!(ended, None, "the manager ended");
            manager.api.is_up().then_some(())
        });
        manager
    }

    /// Starts it.
    pub(crate) fn spawn(&self) -> Manager {
        let log = self.work.join("manager.log");
        // Opened for append: a container restart continues the log.
        let out = File::options().create(true).append(true).open(&log).expect("a log");
        // Without one, nobody is to be asked.
        let socket = self.options.iter().skip_while(|option| *option != "--socket").nth(1);
        let socket = socket.map(PathBuf::from).unwrap_or_default();
        let options = self.options.iter().map(OsStr::new);
        let values = self.variables.iter().map(|(_, value)| value.as_os_str());
        let command = self.command.iter().map(OsString::as_os_str);
        let places = [self.work.as_os_str(), &self.program];
        let namespace = namespace(places.into_iter().chain(options).chain(values).chain(command));
        let child = Command::new(&namespace[0])
            .args(&namespace[1..])
            .args(&self.wrapper)
            .arg(&self.program)
            .arg(self.subcommand)
            .args(&self.options)
            .arg("--")
            .args(&self.command)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.work)
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a descriptor"))
            .stderr(out)
            .spawn()
            .expect("unshare can be executed");
        Manager { outer: child, api: Api { socket }, log }
    }
}

/// A running manager and its namespace; both end when this is dropped.
#[derive(Debug)]
pub(crate) struct Manager {
    /// `unshare`, which waits for the namespace's first process and ends in the same way.
    outer: Child,
    pub(crate) api: Api,
    log: PathBuf,
}

impl Manager {
    /// The namespace's first process, by its pid here; none if it has ended.
    pub(crate) fn init(&self) -> Option<i32> {
        let unshare = self.outer.id();
        let children = format!("/proc/{unshare}/task/{unshare}/children");
        fs::read_to_string(children).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// True if the manager has a thread with this name.
    pub(crate) fn has_thread(&self, name: &str) -> bool {
        let Some(init) = self.init() else { return false };
        let threads = fs::read_dir(format!("/proc/{init}/task")).into_iter().flatten().flatten();
        let mut names =
            threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
        names.any(|found| found.trim_end() == name)
    }

    /// All processes in the namespace.
    pub(crate) fn guests(&self) -> Vec<NamespaceProcess> {
        self.init().map(namespace_processes).unwrap_or_default()
    }

    /// All processes but the manager.
    pub(crate) fn others(&self) -> Vec<NamespaceProcess> {
        let mut guests = self.guests();
        guests.retain(|guest| guest.pid != 1);
        guests
    }

    /// The only process, besides the manager, whose command line contains `what`.
    #[track_caller]
    pub(crate) fn find(&self, what: &str) -> NamespaceProcess {
        let guests = self.others();
        let mut found = guests.iter().filter(|guest| guest.command.contains(what));
        match (found.next(), found.next()) {
            (Some(guest), None) => guest.clone(),
            _ => panic!("not one process with {what:?}: {guests:#?}"),
        }
    }

    #[track_caller]
    pub(crate) fn assert_alone(&self) {
        let others = self.others();
        assert!(others.is_empty(), "still there: {others:#?}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let init = self.init().expect("the manager runs");
        kill(Pid::from_raw(init), signal).expect("the manager can be signalled");
    }

    /// Waits until the manager has ended by itself; returns its code as a shell would show it.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let ended = || self.outer.try_wait().expect("unshare is ours");
        let status = eventually("the manager has ended", ended);
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Starts a process in the namespace that is not the engine's, like `kubectl exec`. It ends
    /// with the namespace.
    pub(crate) fn visitor(&self) -> NamespaceProcess {
        // The shell stays outside, so the kernel does not give its child to the manager.
        self.entered(&["--no-fork"])
    }

    /// The same, but its parent in the namespace has ended, and the manager has adopted it.
    pub(crate) fn visitors_daemon(&self) -> NamespaceProcess {
        self.entered(&[])
    }

    fn entered(&self, options: &[&str]) -> NamespaceProcess {
        let init = self.init().expect("the manager runs").to_string();
        let before: Vec<i32> = self.guests().iter().map(|guest| guest.pid).collect();
        Command::new("nsenter")
            .args(["--target", &init, "--pid", "--mount"])
            .args(options)
            .args(["sh", "-c", "sleep 1000000 &"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("nsenter can be executed");
        let guests = self.guests();
        let visitor = guests.iter().find(|guest| !before.contains(&guest.pid));
        visitor.expect("a visitor").clone()
    }

    /// Sends KILL to the manager, which ends its whole namespace, like the end of a container.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.wait();
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let from = lines.len().saturating_sub(80);
            println!("the log of the manager:\n{}", lines[from..].join("\n"));
        }
        // Its first process also gets KILL, by --kill-child.
        if let Some(init) = self.init() {
            let _ = kill(Pid::from_raw(init), Signal::SIGKILL);
        }
        let _ = self.outer.wait();
    }
}
