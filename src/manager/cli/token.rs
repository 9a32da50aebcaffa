//! `token`: a short-lived token for curl.

use std::io::Write;
use std::time::SystemTime;

use super::args::TokenArgs;
use super::failure::Failure;
use stayput_http::jwt::{Grant, UnknownScope, mint};

/// Prints a token, and nothing else.
pub(super) fn print(args: &TokenArgs, out: &mut impl Write) -> Result<(), Failure> {
    let grant = Grant {
        subject: "token".to_owned(),
        scopes: args
            .scope
            .parse()
            .map_err(|error: UnknownScope| Failure::Usage(error.to_string()))?,
        audience: args.audience.clone(),
        ttl: args.ttl.to_duration(),
    };
    grant.check().map_err(|error| Failure::Usage(error.to_string()))?;
    let shown = args.key.display();
    let key = std::fs::read(&args.key)
        .map_err(|error| Failure::Failed(format!("the key {shown} cannot be read: {error}")))?;
    let token = mint(&key, &grant, SystemTime::now())
        .map_err(|error| Failure::Failed(format!("no token with the key {shown}: {error}")))?;
    Ok(writeln!(out, "{token}")?)
}
