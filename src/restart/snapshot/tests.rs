//! Tests of operator.

use super::*;

#[test]
fn labels_name_the_operator_and_its_object() {
    let of = |label: &str| {
        let labels = BTreeMap::from([(label.to_owned(), "logs".to_owned())]);
        Operator::of_labels(&labels).map(|operator| operator.describe_object())
    };
    assert_eq!(of(ECK).as_deref(), Some("Elasticsearch logs"));
    for label in OPENSEARCH {
        assert_eq!(of(label).as_deref(), Some("OpenSearchCluster logs"));
    }
    assert_eq!(of("app"), None);
}
