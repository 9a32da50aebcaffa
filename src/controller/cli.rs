//! The command line of `stayput-reconciler`.

mod descriptors;
mod error;
mod run;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use error::CliError;
use stayput_kube_access::cluster;

/// Exit code for a command that cannot be used as it was written (`EX_USAGE` of sysexits).
const USAGE: u8 = 64;

/// Restarts Elasticsearch and OpenSearch clusters on Kubernetes without losing a pod
#[derive(Debug, Parser)]
#[command(name = "stayput-reconciler", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch SearchClusters and restart their nodes
    Run(Box<run::Options>),
    /// Print the definition of the custom resource SearchCluster, as YAML
    Crd,
}

/// Every command and option of `stayput-reconciler`: man pages are made from it.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Runs the program with `args`, the first of which is its own name.
///
/// Exit codes: 0 done; 1 failed; 64 usage.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and go to stdout. If they cannot be written, the exit
            // code remains.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match cli.command {
        Command::Run(options) => run::run(*options),
        Command::Crd => crd(&mut io::stdout()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the exit code remains.
            let _ = writeln!(io::stderr(), "stayput-reconciler: {error}");
            ExitCode::FAILURE
        }
    }
}

fn crd(out: &mut impl Write) -> Result<(), CliError> {
    let yaml = cluster::crd_yaml()?;
    out.write_all(yaml.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}
