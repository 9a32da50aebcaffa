//! `token`: a short-lived token for curl.

use std::io::Write;
use std::time::SystemTime;

use super::args::TokenArgs;
use super::failure::Failure;
use crate::api::Span;
use crate::http::{Grant, mint};

/// Managers refuse tokens that are good for longer.
const LONGEST: Span = Span(60 * 60 * 1000);

/// Prints a token, and nothing else.
pub(super) fn print(args: &TokenArgs, out: &mut impl Write) -> Result<(), Failure> {
    if args.ttl > LONGEST || args.ttl.0 < 1000 {
        return Err(Failure::Usage(
            "--ttl must be from 1s to 1h: managers refuse longer ones".into(),
        ));
    }
    let shown = args.key.display();
    let key = std::fs::read(&args.key)
        .map_err(|error| Failure::Failed(format!("the key {shown} cannot be read: {error}")))?;
    let grant = Grant {
        subject: "token".to_owned(),
        scopes: args.scope.parse().map_err(Failure::Usage)?,
        audience: args.audience.clone(),
        ttl: args.ttl.to_duration(),
    };
    let token = mint(&key, &grant, SystemTime::now())
        .map_err(|error| Failure::Failed(format!("no token with the key {shown}: {error}")))?;
    Ok(writeln!(out, "{token}")?)
}
