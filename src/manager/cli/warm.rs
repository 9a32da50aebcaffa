//! `warm`: makes an archive of the engine's classes, for an image build or in an init container.

use std::io::Write;

use stayput_api::Span;

use super::args::WarmArgs;
use super::failure::Failure;
use crate::warm::{self, Warm, WarmError};

pub(super) fn make(args: WarmArgs, out: &mut impl Write) -> Result<(), Failure> {
    let WarmArgs { archive, options, java_home, best_effort, command } = args;
    let warm = Warm { archive, options, java_home, command };
    if let Some(limit) = best_effort {
        return best_effort_within(&warm, limit, out);
    }
    let made = warm::warm(&warm).map_err(failure)?;
    writeln!(
        out,
        "{}: {} MB; {} names it. The engine uses it, and accepted connections after {:.1} s",
        warm.archive.display(),
        made.size / 1_000_000,
        warm.options.display(),
        made.took.as_secs_f64()
    )?;
    if made.order_varies {
        writeln!(
            out,
            "the class path is lib/*, in the order of this file system: where that differs, as in an \
             image that is unpacked elsewhere, the archive is ignored; name the files one by one, as \
             docker/opensearch/Dockerfile does"
        )?;
    }
    Ok(())
}

fn failure(error: WarmError) -> Failure {
    match error {
        WarmError::Signal(signal) => Failure::Signal(signal, error.to_string()),
        other => Failure::Failed(other.to_string()),
    }
}

/// Makes the archive within the limit. Even if that fails, the pod is to start, unless it is being deleted.
fn best_effort_within(warm: &Warm, limit: Span, out: &mut impl Write) -> Result<(), Failure> {
    let archive = warm.archive.display();
    let written = match warm::once(warm, limit.to_duration()) {
        Ok(Some(size)) => {
            writeln!(out, "{archive}: {} MB; {} names it", size / 1_000_000, warm.options.display())
        }
        Ok(None) => writeln!(
            out,
            "{archive}: it was tried before with this JVM and these jars of the engine, and is not tried again"
        ),
        Err(error @ WarmError::Signal(_)) => return Err(failure(error)),
        Err(error) => writeln!(out, "no archive, so the engine starts without: {error}"),
    };
    written.map_err(Failure::Output)
}
