//! The launcher process of Elasticsearch from 8.4: it starts the server and ends as that ends.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;

use super::config::Config;
use super::event::{self, Event, SHUTDOWN_MARKER};
use super::{EXIT_FAILED, Myself, Refusal, SERVER_JVM, print_error};

/// Runs the launcher, and the server as its child, to the end; returns the exit code.
pub(super) fn run(config: Config, myself: &Myself<'_>) -> Result<u8, Refusal> {
    let (sender, events) = event::signals()
        .map_err(|error| Refusal::failed(format!("cannot handle signals: {error}")))?;
    let mut server = myself
        .command("java", SERVER_JVM)
        .and_then(|mut command| command.stdin(Stdio::piped()).spawn())
        .map_err(|error| Refusal::failed(format!("cannot start the server: {error}")))?;
    // Our end of the pipe: when this process dies, the server reads the end of file.
    let mut stdin = server.stdin.take();
    thread::spawn(move || {
        let code = server.wait().map_or(EXIT_FAILED, |status| {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            u8::try_from(code).unwrap_or(EXIT_FAILED)
        });
        // A receiver that is gone means that the process is ending anyway.
        let _ = sender.send(Event::ServerExited(code));
    });

    let mut ending = None;
    for event in events {
        match event {
            Event::Signal(signal) => {
                let code = event::exit_code_after(signal, config.behaviour.ignore_term);
                if let (Some(code), None) = (code, ending) {
                    ending = Some(code);
                    if let Some(stdin) = &mut stdin {
                        // A server that has ended already is reported by its own event.
                        let _ = stdin.write_all(&[SHUTDOWN_MARKER]);
                    }
                }
            }
            Event::ServerExited(code) => {
                return Ok(ending.unwrap_or_else(|| {
                    print_error(&format!(
                        "ERROR: Elasticsearch exited unexpectedly, with exit code {code}"
                    ));
                    code
                }));
            }
            // Only a server is started by a launcher.
            Event::ShutdownMarker | Event::LauncherGone => {}
        }
    }
    Ok(EXIT_FAILED)
}
