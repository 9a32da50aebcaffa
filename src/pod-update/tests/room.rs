//! A node, the pods on it, and a pod that comes back there.

use crate::room::{Amounts, PodRequests, why_no_room};

fn pod(priority: Option<i32>, amounts: &[(&str, &str)]) -> PodRequests {
    PodRequests { amounts: Amounts::of(amounts.iter().copied()), priority }
}

fn why(others: &[PodRequests], pod: &PodRequests) -> Option<String> {
    let allocatable = [("cpu", "4"), ("memory", "16Gi"), ("pods", "3")];
    why_no_room(&Amounts::of(allocatable), others, pod)
}

#[test] // proves UPDATE-9
fn amounts_that_others_request_are_not_free() {
    let others = [pod(None, &[("cpu", "500m"), ("memory", "4Gi"), ("pods", "1")])];
    let why = |cpu, memory| why(&others, &pod(None, &[("cpu", cpu), ("memory", memory)]));
    assert_eq!(why("1", "12Gi"), None);
    assert_eq!(
        why("1", "13Gi").expect("it does not fit"),
        "it requests 13312 MiB memory of which 12288 MiB are left: make room there, or request less"
    );
    assert_eq!(
        why("4", "13Gi").expect("it does not fit"),
        "it requests 4000m cpu of which 3500m are left, 13312 MiB memory of which 12288 MiB are \
         left: make room there, or request less"
    );
}

#[test] // proves UPDATE-9
fn any_resource_counts_and_the_number_of_pods() {
    let one = pod(None, &[("pods", "1")]);
    let full = why(&[one.clone(), one.clone(), one.clone()], &one).expect("the node is full");
    assert!(full.contains("1 pods of which 0 are left"), "{full}");
    let limits = [("example.com/gpu", "2"), ("hugepages-2Mi", "4Mi")];
    let lacks = why(&[], &pod(None, &limits)).expect("the node has none");
    assert!(lacks.contains("2 example.com/gpu of which 0 are left"), "{lacks}");
    assert!(lacks.contains("4 MiB hugepages-2Mi of which 0 MiB are left"), "{lacks}");
}

#[test] // proves UPDATE-9
fn amounts_of_pods_with_a_lower_priority_are_free() {
    for (own, other, fits) in [
        (Some(1000), Some(0), true),
        (Some(1000), None, true),
        (Some(1000), Some(1000), false),
        (Some(1000), Some(2000), false),
        (Some(0), Some(-1), true),
        (None, Some(-1), false),
    ] {
        let found = why(&[pod(other, &[("memory", "8Gi")])], &pod(own, &[("memory", "12Gi")]));
        assert_eq!(found.is_none(), fits, "{own:?}, {other:?}: {found:?}");
    }
}
