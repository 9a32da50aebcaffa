use serde_json::{Value, json};

use super::*;

fn listed(slices: &[&[(&str, Value)]]) -> ObjectList<EndpointSlice> {
    let entry = |(uid, conditions): &(&str, Value)| {
        let target = json!({"kind": "Pod", "uid": uid});
        json!({"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": target})
    };
    let slice = |entries: &&[(&str, Value)]| {
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        json!({"addressType": "IPv4", "metadata": {}, "endpoints": entries})
    };
    let items: Vec<Value> = slices.iter().map(slice).collect();
    serde_json::from_value(json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "metadata": {},
        "items": items,
    }))
    .expect("a list")
}

#[test]
fn it_counts_since_the_first_look_without_requests_to_it() {
    let unserved = Unserved::default();
    let note = |endpoint, now| unserved.note("a", &Ok(endpoint), Time(now));
    assert_eq!(note(Endpoint::Ready, 1), None);
    assert_eq!(note(Endpoint::NotReady, 2), Some(Time(2)));
    assert_eq!(note(Endpoint::NotReady, 3), Some(Time(2)));
    assert_eq!(note(Endpoint::Ready, 4), None);
    assert_eq!(note(Endpoint::NotReady, 5), Some(Time(5)));
    let unknown = Err(Unknown { message: "forbidden".into() });
    assert_eq!(unserved.note("a", &unknown, Time(6)), None, "nothing is assumed");
}

#[test] // proves STOP-19
fn a_pod_is_sent_requests_if_any_slice_has_it_as_ready() {
    let (ready, not) = (json!({"ready": true}), json!({"ready": false, "serving": false}));
    // The headless Service of most clusters.
    let published = json!({"ready": true, "serving": false});
    let slices = listed(&[
        &[("a", ready.clone()), ("b", not.clone()), ("d", json!({}))],
        &[("a", not.clone()), ("b", published)],
        &[],
    ]);
    let of = |uid| endpoint(Ok(&slices), uid);
    assert_eq!(of("a"), Ok(Endpoint::Ready));
    assert_eq!(of("b"), Ok(Endpoint::NotReady));
    assert_eq!(of("c"), Ok(Endpoint::Absent));
    assert_eq!(of("d"), Ok(Endpoint::Ready), "a condition that is absent counts as true");
}
