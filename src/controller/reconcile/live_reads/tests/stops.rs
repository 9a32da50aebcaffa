mod targets;

use crate::reconcile::live_reads::*;

#[test]
fn a_stop_is_sent_only_if_the_live_plan_has_it_and_its_pod_was_read() {
    let stop = |uid: &str, sequence| Action::Stop {
        uid: uid.into(),
        sequence,
        drain: 0,
        resume: None,
        exit: false,
    };
    let [a, b, c] = [stop("a", 1), stop("b", 1), stop("c", 1)];
    let again = Plan { actions: vec![stop("a", 1), stop("b", 2), stop("c", 1)], ..Plan::default() };
    let unread = BTreeSet::from(["c".to_owned()]);
    assert_eq!(confirmed(&[&a, &b, &c], &again, &unread), [&a]);
}
