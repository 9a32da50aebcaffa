//! Which TLS versions and cipher suites the listener speaks, as curl and openssl see it.

use std::process::{Command, Stdio};

use super::processes::eventually;
use super::secured::Secured;

/// Whether openssl, with everything old allowed, completes a handshake with these options.
fn openssl(secured: &Secured, options: &[&str]) -> bool {
    let mut client = Command::new("openssl");
    client.args(["s_client", "-connect", &format!("127.0.0.1:{}", secured.port)]);
    let client = client.args(options).stdin(Stdio::null()).output().expect("openssl");
    let said = String::from_utf8_lossy(&client.stdout);
    assert!(said.contains("Cipher is "), "{}", String::from_utf8_lossy(&client.stderr));
    // It prints an empty session if the handshake fails.
    !said.contains("Cipher is (NONE)")
}

const OLD: &[&str] = &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
const MODERN: &[&str] = &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
/// Suites with CBC, and without a key exchange for each connection.
const WEAK: [&str; 3] = ["ECDHE-RSA-AES128-SHA256", "AES128-GCM-SHA256", "AES256-SHA"];

fn weak(suite: &str) -> [&str; 3] {
    ["-tls1_2", "-cipher", suite]
}

#[test] // proves ACCESS-9
fn a_client_without_tls_1_3_is_refused_and_the_log_says_why() {
    let secured = Secured::start(&[], |command| command);
    assert_eq!(secured.curl(&["--tlsv1.3"], "/livez"), "200");
    assert_eq!(secured.curl(&["--tls-max", "1.2"], "/livez"), "000");
    eventually("a line in the log", || {
        let log = secured.manager.log();
        let line = log.lines().find(|line| line.contains("--tls-min"))?;
        assert!(line.contains("INFO") && line.contains("127.0.0.1:"), "{line}");
        Some(())
    });
    assert!(!openssl(&secured, MODERN) && !openssl(&secured, OLD));
    assert!(openssl(&secured, &["-tls1_3"]));
    // One line, whatever many clients do.
    assert_eq!(secured.manager.log().matches("--tls-min").count(), 1);
}

#[test] // proves ACCESS-9
fn with_tls_min_1_2_modern_suites_are_accepted_and_nothing_older() {
    let secured = Secured::start(&["--tls-min", "1.2"], |command| command);
    assert_eq!(secured.curl(&["--tls-max", "1.2"], "/livez"), "200");
    assert_eq!(secured.curl(&["--tlsv1.3"], "/livez"), "200");
    assert!(openssl(&secured, MODERN));
    for suite in WEAK {
        assert!(!openssl(&secured, &weak(suite)), "{suite}");
    }
    assert!(!openssl(&secured, OLD));
}
