//! The namespaces of a manager under test, as of a container: pids and `/tmp` of its own.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::process::Command;

use super::manager::AS_ENGINE;

/// Everything ends with the test, also if the test is killed.
const NAMESPACE: [&str; 7] =
    ["setpriv", "--pdeathsig=KILL", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
/// Makes `/tmp` anew for the command behind `--`; the entries named before it stay.
///
/// JVMs find each other by files in `/tmp` that are named after a pid: `.java_pid7`,
/// `hsperfdata_user/7`. In two PID namespaces the pids are the same. With one `/tmp` for both, an
/// Elasticsearch loads its agent into another node and ends, and a JVM that finds its file locked
/// says so on stdout, which the script of OpenSearch takes for options.
const OWN_TMP: &str = r#"
    exec 3</tmp
    mount -t tmpfs -o mode=1777 tmpfs /tmp || exit
    while [ "$1" != -- ]; do
        mkdir "/tmp/$1" || exit
        mount --no-canonicalize --rbind "/proc/self/fd/3/$1" "/tmp/$1" || exit
        shift
    done
    shift
    cd "$PWD" || exit
    exec 3<&- "$@""#;

/// The words to put in front of a command that uses these paths, or texts with paths in them. A
/// repository that is in `/tmp` stays there, too: the command runs in its directory.
pub(crate) fn namespace<'a>(used: impl IntoIterator<Item = &'a OsStr>) -> Vec<String> {
    let here = env::current_dir().expect("a working directory");
    let used = used.into_iter().map(OsStr::to_string_lossy);
    let mut kept: BTreeSet<String> = used.flat_map(|text| in_tmp(&text)).collect();
    kept.extend(in_tmp(&here.to_string_lossy()));
    let fixed = NAMESPACE.into_iter().chain(["--", "sh", "-c", OWN_TMP, "sh"]);
    fixed.map(str::to_owned).chain(kept).chain(["--".to_owned()]).collect()
}

/// Names of the entries of `/tmp` that a text mentions.
fn in_tmp(text: &str) -> Vec<String> {
    let mentions = text.split("/tmp/").skip(1);
    let names = mentions.filter_map(|rest| rest.split(['/', '=', ':', ' ']).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Why such a namespace cannot be created here.
pub(crate) fn cannot_isolate() -> Option<String> {
    let mut line = namespace([]);
    line.extend(AS_ENGINE.map(str::to_owned));
    match Command::new(&line[0]).args(&line[1..]).arg("true").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        Err(error) => Some(format!("{}: {error}", line[0])),
    }
}
