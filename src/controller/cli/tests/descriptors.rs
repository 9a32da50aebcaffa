use crate::cli::*;

#[test] // proves RESTART-34
fn the_limit_is_as_high_as_it_may_be() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard - 1, hard).expect("a lower limit");
    raise_limit();
    assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).expect("a limit"), (hard, hard));
}
