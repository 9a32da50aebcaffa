//! A program that cannot take over: nothing changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::pod::Pod;
use super::{install, install_version, request, start, upgrade, write_program};

#[test] // proves HOST-5
fn a_program_that_cannot_take_over_changes_nothing() {
    let pod = Pod::new();
    let manager = start(&pod, &[], &["sleep", "600"]);
    let before = manager.until_state("running");
    let engine = manager.engine();
    let copy = |from: &'static str, mode: u32| {
        move |path: &Path| {
            write_program(path, &fs::read(from).expect("a program"));
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
        }
    };
    let refused = |why: &str| {
        let answer = request(&manager);
        let code = answer.body["code"].as_str();
        assert_eq!((answer.code, code), (409, Some("upgrade_refused")), "{:#}", answer.body);
        let detail = answer.body["detail"].as_str().expect("a message").to_owned();
        assert!(detail.contains(why), "{detail}");
        let now = manager.status();
        assert_eq!(now["manager"]["boot_id"], before["manager"]["boot_id"]);
        assert_eq!((manager.engine(), &now["state"]), (engine, &"running".into()));
    };
    fs::remove_file(pod.path("stayput")).expect("removed");
    refused("No such file");
    install(&pod, |path| mkfifo(path, Mode::S_IRWXU).expect("a fifo"));
    refused("not a file");
    install(&pod, copy("/bin/true", 0o644));
    refused("Permission denied");
    install(&pod, copy("/bin/true", 0o775));
    refused("others can write it");
    install(&pod, copy("/bin/true", 0o755));
    refused("not a manager that can take over");
    install(&pod, copy("/bin/false", 0o755));
    refused("ended with code 1");
    install(&pod, |path| {
        let mut bytes = fs::read("/bin/true").expect("a program");
        // The field of the ELF header that names the processor.
        bytes[18..20].copy_from_slice(&[0xff, 0x7f]);
        write_program(path, &bytes);
    });
    refused("another kind of machine");
    install(&pod, |path| {
        let mut bytes = fs::read("/bin/true").expect("a program");
        // The field of the ELF header that says where it begins.
        bytes[24..32].fill(0);
        write_program(path, &bytes);
    });
    refused("ended by signal 11");
    // What would stop it when it has taken over.
    install_version(&pod, "0.1.1");
    fs::rename(pod.path("state"), pod.path("elsewhere")).expect("renamed");
    refused("--state-dir");
    fs::rename(pod.path("elsewhere"), pod.path("state")).expect("renamed");
    assert_eq!(upgrade(&manager)["run"], before["run"]);
}
