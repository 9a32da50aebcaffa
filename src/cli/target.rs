//! Which manager a client command means: the command line first, then the environment.

use std::path::PathBuf;

use super::args::ClientArgs;
use crate::manager_client::{Address, Credentials};
use crate::settings::Environment;

/// Where the socket is if nobody says.
const DEFAULT_SOCKET: &str = "/run/stayput/stayput.sock";

/// Finds the manager's address.
pub(super) fn address(args: &ClientArgs, environment: &Environment) -> Result<Address, String> {
    let variable = |name| environment.get(name).filter(|value| !value.is_empty());
    let file =
        |arg: &Option<PathBuf>, name| arg.clone().or_else(|| variable(name).map(PathBuf::from));
    if let Some(socket) = &args.socket {
        return Ok(Address::Socket(socket.clone()));
    }
    // An image sets STAYPUT_SOCKET for everybody in it, so a URL is the more deliberate choice.
    let url = match (&args.url, variable("STAYPUT_URL")) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(url)) => Some(
            url.to_str()
                .ok_or_else(|| "STAYPUT_URL is not UTF-8: it must be a URL".to_owned())?
                .into(),
        ),
        (None, None) => None,
    };
    if let Some(url) = url {
        let credentials = Credentials {
            ca: file(&args.ca, "STAYPUT_CA"),
            token: file(&args.token_file, "STAYPUT_TOKEN_FILE"),
            certificate: file(&args.cert, "STAYPUT_CERT"),
            key: file(&args.key, "STAYPUT_KEY"),
        };
        return Ok(Address::Url { url, credentials });
    }
    for (option, given) in [
        ("--token-file", &args.token_file),
        ("--ca", &args.ca),
        ("--cert", &args.cert),
        ("--key", &args.key),
    ] {
        if given.is_some() {
            return Err(format!("{option} is for --url: over the socket it is of no use"));
        }
    }
    Ok(Address::Socket(file(&None, "STAYPUT_SOCKET").unwrap_or_else(|| DEFAULT_SOCKET.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(args: ClientArgs, variables: &[(&str, &str)]) -> Result<Address, String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        address(&args, &Environment::new(variables))
    }

    fn socket(path: &str) -> Address {
        Address::Socket(path.into())
    }

    #[test]
    fn the_command_line_beats_the_environment_and_a_url_beats_the_images_socket() {
        let both = [("STAYPUT_SOCKET", "/image.sock"), ("STAYPUT_URL", "https://a:1")];
        let named = ClientArgs { socket: Some("/mine.sock".into()), ..ClientArgs::default() };
        assert_eq!(with(named, &both), Ok(socket("/mine.sock")));
        assert!(matches!(
            with(ClientArgs::default(), &both),
            Ok(Address::Url { url, .. }) if url == "https://a:1"
        ));
        assert_eq!(with(ClientArgs::default(), &both[..1]), Ok(socket("/image.sock")));
        assert_eq!(
            with(ClientArgs::default(), &[("STAYPUT_SOCKET", "")]),
            Ok(socket(DEFAULT_SOCKET))
        );
    }

    #[test]
    fn credentials_come_from_both() {
        let args = ClientArgs {
            url: Some("https://b:1".into()),
            ca: Some("/arg".into()),
            ..ClientArgs::default()
        };
        let variables = [("STAYPUT_CA", "/env"), ("STAYPUT_TOKEN_FILE", "/token")];
        let credentials = Credentials {
            ca: Some("/arg".into()),
            token: Some("/token".into()),
            ..Credentials::default()
        };
        assert_eq!(
            with(args, &variables),
            Ok(Address::Url { url: "https://b:1".into(), credentials })
        );
    }

    #[test]
    fn credentials_without_a_url_are_a_mistake() {
        let args = ClientArgs { token_file: Some("/t".into()), ..ClientArgs::default() };
        assert!(with(args, &[]).is_err_and(|error| error.starts_with("--token-file")));
    }
}
