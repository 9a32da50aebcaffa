use crate::apiserver::watch_error;
use crate::workers::*;

#[test]
fn a_namespace_that_must_not_be_seen_keeps_no_other_waiting() {
    let mut known = Known::new(&["a".into(), "b".into()]);
    known.apply(Some("a".into()), Event::Init);
    known.apply(Some("a".into()), Event::InitDone);
    assert!(known.is_complete("a") && !known.is_complete("b") && !known.is_ready());
    let status = kube::core::Status { code: 403, ..kube::core::Status::default() };
    let forbidden = kube::Error::Api(Box::new(status));
    let error = watcher::Error::InitialListFailed(forbidden);
    assert!(watch_error("searchclusters", Some("b"), &error).contains("roles of deploy/"));
    known.note_error(Some("b".into()), &error);
    assert!(known.is_ready() && !known.is_complete("b"));
}
