//! Credentials of the probe, from a file or from the directory of a mounted Secret.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

use super::secrets::{SecretsError, content};

/// The keys of a Secret that `spec.engine.credentialsSecret` of a SearchCluster can name, too.
const API_KEY: &str = "apiKey";
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
/// The password of this user, as ECK keeps it.
const ELASTIC: &str = "elastic";

/// The value of the header `Authorization`.
pub(super) fn authorization(path: &Path) -> Result<HeaderValue, SecretsError> {
    if path.is_dir() {
        return of_secret(path);
    }
    let content = content("--ready-auth", path)?;
    header(&content).ok_or_else(|| SecretsError::NoCredentials { path: path.to_owned() })
}

/// Header from a Secret that is mounted as a directory: each key is a file.
fn of_secret(directory: &Path) -> Result<HeaderValue, SecretsError> {
    let has = |key: &str| directory.join(key).exists();
    let wrong = || SecretsError::NoSecret { path: directory.to_owned() };
    let read = |key: &str| {
        let content = content("--ready-auth", &directory.join(key))?;
        line(&content).filter(|line| !line.is_empty()).map(str::to_owned).ok_or_else(wrong)
    };
    let value = if has(API_KEY) {
        sensitive(format!("ApiKey {}", read(API_KEY)?))
    } else if has(USERNAME) {
        basic(&read(USERNAME)?, &read(PASSWORD)?)
    } else if has(ELASTIC) {
        basic(ELASTIC, &read(ELASTIC)?)
    } else {
        None
    };
    value.ok_or_else(wrong)
}

/// The header for `USER:PASSWORD`, or for a text that already is its value: `ApiKey KEY`, `Bearer TOKEN`.
fn header(content: &[u8]) -> Option<HeaderValue> {
    let line = line(content)?;
    let is_header = line.split_once(' ').is_some_and(|(scheme, value)| {
        ["apikey", "bearer", "basic"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
            && !value.trim().is_empty()
    });
    match line.split_once(':') {
        _ if is_header => sensitive(line.to_owned()),
        Some((user, password)) if !user.is_empty() => basic(user, password),
        Some(_) | None => None,
    }
}

/// The only line of a file. Editors and `echo` add a newline; a password may end with a space.
fn line(content: &[u8]) -> Option<&str> {
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    (!line.contains(char::is_control)).then_some(line)
}

/// The header of basic authentication. The first colon ends the name of the user, so there is none in it.
fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    if user.contains(':') {
        return None;
    }
    sensitive(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

fn sensitive(value: String) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_and_password_or_a_whole_header() {
        let text = |content: &[u8]| header(content).map(|value| value.to_str().unwrap().to_owned());
        let basic = Some("Basic ZWxhc3RpYzphOmIgw7w=".to_owned());
        assert_eq!(text("elastic:a:b ü".as_bytes()), basic);
        assert_eq!(text("elastic:a:b ü\r\n".as_bytes()), basic);
        assert_eq!(text(b"ApiKey aWQ6a2V5\n").as_deref(), Some("ApiKey aWQ6a2V5"));
        assert_eq!(text(b"bearer a.b.c").as_deref(), Some("bearer a.b.c"));
        for bad in
            [&b""[..], b"\n", b"secret", b":secret", b"a:b\nc:d", b"a:b\n\n", b"ApiKey ", b"a:\xff"]
        {
            assert_eq!(text(bad), None, "{bad:?}");
        }
        let debug = format!("{:?}", header(b"elastic:secret"));
        assert!(!debug.contains("ZWxhc3RpYz"), "{debug}");
    }

    #[test] // proves STOP-37
    fn a_mounted_secret_has_the_keys_that_a_search_cluster_takes() {
        let of = |files: &[(&str, &str)]| {
            let directory = tempfile::tempdir().unwrap();
            for (name, content) in files {
                std::fs::write(directory.path().join(name), content).unwrap();
            }
            let value = authorization(directory.path());
            value.map(|value| value.to_str().unwrap().to_owned()).map_err(|error| error.to_string())
        };
        let elastic = Ok("Basic ZWxhc3RpYzphOmIgw7w=".to_owned());
        assert_eq!(of(&[("elastic", "a:b ü")]), elastic, "as ECK keeps it");
        let user = [("username", "elastic\n"), ("password", "a:b ü\n"), ("tls.key", "x\ny")];
        assert_eq!(of(&user), elastic);
        assert_eq!(of(&[("elastic", "no"), user[0], user[1]]), elastic);
        let key = of(&[("apiKey", "aWQ6a2V5"), user[0], user[1]]);
        assert_eq!(key, Ok("ApiKey aWQ6a2V5".to_owned()));
        for (files, reason) in [
            (&[][..], "it needs the files username and password, or apiKey, or elastic"),
            (&[("username", "elastic")], "/password cannot be read: No such file"),
            (&[("username", "a:b"), ("password", "hush")], "is a directory, but"),
            (&[("username", "a"), ("password", "hush\nhush")], "each with one line"),
            (&[("elastic", "")], "each with one line"),
        ] {
            let error = of(files).expect_err(reason);
            assert!(error.contains(reason) && !error.contains("hush"), "{error}");
        }
    }
}
