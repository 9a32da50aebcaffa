//! The address of the manager, from the command line, otherwise from the environment.

use std::path::{Path, PathBuf};

use super::args::ClientArgs;
use crate::settings::Environment;
use stayput_http::https::{Identity, ONLY_1_3, Pem, Tls};
use stayput_http::manager_client::{Address, Credentials, Token};

/// Socket to use without any option or variable.
const DEFAULT_SOCKET: &str = "/run/stayput/stayput.sock";

/// The chosen address; its files are not read yet.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Socket(PathBuf),
    Url { url: String, files: Files },
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    ca: Option<PathBuf>,
    token: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// Finds the manager's address, and reads the files with the credentials.
pub(super) fn address(args: &ClientArgs, environment: &Environment) -> Result<Address, String> {
    match choose(args, environment)? {
        Choice::Socket(path) => Ok(Address::Socket(path)),
        Choice::Url { url, files } => {
            Ok(Address::Url { url, server_name: None, credentials: files.read()? })
        }
    }
}

impl Files {
    fn read(self) -> Result<Credentials, String> {
        let Self { ca, token, certificate, key } = self;
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(Identity {
                certificate: read("the client certificate", &certificate, "--cert, STAYPUT_CERT")?,
                key: read("the key", &key, "--key, STAYPUT_KEY")?,
            }),
            (Some(_), None) => {
                return Err("a client certificate needs its key: give --key FILE as well".into());
            }
            (None, Some(_)) => {
                return Err("a key needs its client certificate: give --cert FILE as well".into());
            }
        };
        let tls = match ca {
            None => None,
            Some(ca) => {
                let ca = read("the CA", &ca, "--ca, STAYPUT_CA")?;
                Some(Tls::new(&ca, identity.as_ref(), ONLY_1_3)?)
            }
        };
        Ok(Credentials { tls, token: token.map(Token::File) })
    }
}

/// Reads a file. Error messages name the option that the path came from.
fn read(what: &str, path: &Path, option: &str) -> Result<Pem, String> {
    let name = format!("{what} {} ({option})", path.display());
    match std::fs::read(path) {
        Ok(bytes) => Ok(Pem::new(name, bytes)),
        Err(error) => Err(format!("{name} cannot be read: {error}")),
    }
}

fn choose(args: &ClientArgs, environment: &Environment) -> Result<Choice, String> {
    let variable = |name| environment.get(name).filter(|value| !value.is_empty());
    let file =
        |arg: &Option<PathBuf>, name| arg.clone().or_else(|| variable(name).map(PathBuf::from));
    if let Some(socket) = &args.socket {
        return Ok(Choice::Socket(socket.clone()));
    }
    // STAYPUT_SOCKET is set for every process in an image, so a URL is the more specific choice.
    let url = match (&args.url, variable("STAYPUT_URL")) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(url)) => {
            let url = url.to_str().ok_or("STAYPUT_URL is not UTF-8: it must be a URL")?;
            Some(url.to_owned())
        }
        (None, None) => None,
    };
    if let Some(url) = url {
        let files = Files {
            ca: file(&args.ca, "STAYPUT_CA"),
            token: file(&args.token_file, "STAYPUT_TOKEN_FILE"),
            certificate: file(&args.cert, "STAYPUT_CERT"),
            key: file(&args.key, "STAYPUT_KEY"),
        };
        return Ok(Choice::Url { url, files });
    }
    for (option, given) in [
        ("--token-file", &args.token_file),
        ("--ca", &args.ca),
        ("--cert", &args.cert),
        ("--key", &args.key),
    ] {
        if given.is_some() {
            return Err(format!("{option} is for --url: the socket does not use it"));
        }
    }
    Ok(Choice::Socket(file(&None, "STAYPUT_SOCKET").unwrap_or_else(|| DEFAULT_SOCKET.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(args: ClientArgs, variables: &[(&str, &str)]) -> Result<Choice, String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        choose(&args, &Environment::new(variables))
    }

    fn socket(path: &str) -> Choice {
        Choice::Socket(path.into())
    }

    #[test]
    fn the_command_line_beats_the_environment_and_a_url_beats_the_images_socket() {
        let both = [("STAYPUT_SOCKET", "/image.sock"), ("STAYPUT_URL", "https://a:1")];
        let named = ClientArgs { socket: Some("/mine.sock".into()), ..ClientArgs::default() };
        assert_eq!(with(named, &both), Ok(socket("/mine.sock")));
        assert!(matches!(
            with(ClientArgs::default(), &both),
            Ok(Choice::Url { url, .. }) if url == "https://a:1"
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
        let files =
            Files { ca: Some("/arg".into()), token: Some("/token".into()), ..Files::default() };
        assert_eq!(with(args, &variables), Ok(Choice::Url { url: "https://b:1".into(), files }));
    }

    #[test]
    fn credentials_without_a_url_are_a_mistake() {
        let args = ClientArgs { token_file: Some("/t".into()), ..ClientArgs::default() };
        assert!(with(args, &[]).is_err_and(|error| error.starts_with("--token-file")));
    }

    #[test]
    fn files_that_cannot_be_used_are_named_with_their_option() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let file = || Some(empty.clone());
        let absent = || Some(PathBuf::from("/absent"));
        for (files, parts) in [
            (Files { ca: absent(), ..Files::default() }, ["/absent", "--ca, STAYPUT_CA"]),
            (Files { ca: file(), ..Files::default() }, ["STAYPUT_CA", "holds no CERTIFICATE"]),
            (Files { certificate: file(), ..Files::default() }, ["needs its key", "--key FILE"]),
            (Files { key: file(), ..Files::default() }, ["its client certificate", "--cert FILE"]),
            (
                Files { certificate: absent(), key: file(), ..Files::default() },
                ["/absent", "STAYPUT_CERT"],
            ),
        ] {
            let error = files.read().unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
