//! What holds for every manifest.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::yaml::documents;
use crate::{Options, inject, uninject};

/// Ways to write a list of the container: absent, empty, block in both indentations, flow.
fn list(name: &'static str, items: &'static [&'static str]) -> impl Strategy<Value = String> {
    let block = |indent: &'static str| {
        let lines = items.iter().map(move |item| format!("          {indent}- {item}\n"));
        format!("          {name}: # list\n{}", lines.collect::<String>())
    };
    prop_oneof![
        Just(String::new()),
        Just(format!("          {name}:\n")),
        Just(format!("          {name}: []\n")),
        Just(format!("          {name}: [ ]  # none\n")),
        Just(format!("          {name}: [{}]\n", items.join(","))),
        Just(format!("          {name}: [ {} , ] # flow\n", items.join(" , "))),
        Just(block("")),
        Just(block("  ")),
        Just(block("  ").replacen('-', "# above\n\n            -", 1)),
    ]
}

/// Fields of the container in any order.
fn container() -> impl Strategy<Value = String> {
    let fields = (
        list("env", &["{name: A, value: a}", "{name: B, value: b}"]),
        list("ports", &["{name: http, containerPort: 9200}"]),
        list(
            "volumeMounts",
            &[
                "{name: c, mountPath: /usr/share/opensearch/config/opensearch.yml, subPath: opensearch.yml}",
                "{name: data, mountPath: /data}",
                "{name: c, subPath: x.yml, mountPath: /usr/share/opensearch/config/x.yml}",
            ],
        ),
        prop_oneof![
            Just(String::new()),
            Just("          args: [opensearch]\n".to_owned()),
            Just("          args:\n          - opensearch # one\n\n          # below\n".to_owned()),
        ],
        prop_oneof![
            Just(String::new()),
            Just("          startupProbe: {tcpSocket: {port: 1}}\n".to_owned()),
            Just("          startupProbe:\n            exec:\n              command:\n              - |\n                a\n\n\n".to_owned()),
        ],
        prop_oneof![
            Just(String::new()),
            Just("          readinessProbe: null\n".to_owned()),
            Just("          readinessProbe: {httpGet: {port: 9200}} # old\n".to_owned()),
        ],
    );
    let fields = fields.prop_map(|(a, b, c, d, e, f)| vec![a, b, c, d, e, f]).prop_shuffle();
    fields.prop_map(|fields| {
        let image = "image: \"opensearchproject/opensearch:2.19.3\"\n".to_owned();
        let name = "          name: opensearch\n".to_owned();
        format!("        - {image}{name}{}", fields.concat())
    })
}

fn stateful_set() -> impl Strategy<Value = String> {
    let metadata = prop_oneof![
        Just("metadata: {name: logs}\n"),
        Just("metadata: {name: logs, annotations: {}}\n"),
        Just("metadata:\n  annotations:\n  name: logs\n"),
        Just("metadata:\n  annotations: {a: b}\n  name: logs\n"),
        Just(
            "metadata:\n    name: logs\n    annotations:\n        # c\n        a: |\n            b\n"
        ),
    ];
    let volumes = prop_oneof![
        Just(""),
        Just("      volumes: null # none\n"),
        Just("      volumes:\n      - name: c\n        secret: {secretName: s}\n"),
        Just("      volumes: [{name: c, configMap: {name: m}}]\n"),
    ];
    let grace = prop_oneof![
        Just(""),
        Just("      terminationGracePeriodSeconds: 30\n"),
        Just("      terminationGracePeriodSeconds: 600 # long\n"),
    ];
    let end = prop_oneof![Just(""), Just("# end\n"), Just("\n\n"), Just("---\nkind: Other\n")];
    let newline = prop_oneof![Just("\n"), Just("\r\n")];
    (metadata, container(), volumes, grace, end, newline, any::<bool>()).prop_map(
        |(metadata, container, volumes, grace, end, newline, cut)| {
            let head = "# head\n---\napiVersion: apps/v1\nkind: StatefulSet\n";
            let spec = "spec:\n  template:\n    spec:\n";
            let text = format!(
                "{head}{metadata}{spec}{grace}      containers:\n{container}{volumes}{end}"
            );
            let text = if cut { text.trim_end().to_owned() } else { text };
            text.replace('\n', newline)
        },
    )
}

/// The same objects on one line each.
fn as_json(text: &str) -> String {
    let roots = documents(text).unwrap().into_iter().filter_map(|document| document.root);
    roots.map(|root| format!("---\n{}\n", root.value())).collect()
}

fn values(text: &str) -> Vec<serde_json::Value> {
    let roots = documents(text).unwrap().into_iter().filter_map(|document| document.root);
    roots.map(|root| root.value()).collect()
}

/// The same cases every time; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for others.
fn always_the_same() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let rng_seed = match asked.rng_seed {
        RngSeed::Random => RngSeed::Fixed(14),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { 25 };
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..asked }
}

proptest! {
    #![proptest_config(always_the_same())]

    #[test] // proves MANIFEST-2
    fn every_byte_comes_back_and_twice_is_once(text in stateful_set()) {
        let options = Options::default();
        let injected = inject(&text, &options).unwrap_or_else(|found| panic!("{text}\n{found:#?}"));
        prop_assert_eq!(injected.changed.len(), 1);
        let injected = injected.text;
        prop_assert_eq!(&uninject(&injected).unwrap().text, &text);
        prop_assert_eq!(&inject(&injected, &options).unwrap().text, &injected);
    }

    #[test] // proves MANIFEST-13
    fn how_it_is_written_has_no_influence(text in stateful_set()) {
        let options = Options::default();
        let template = |text: &str| {
            let text = inject(text, &options).unwrap().text;
            values(&text)[0]["spec"].clone()
        };
        prop_assert_eq!(template(&as_json(&text)), template(&text));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-{}\\[\\]:,&*|>'\"# \na-c!%?~]{0,60}") {
        if let Ok(outcome) = inject(&text, &Options::default()) {
            prop_assert_eq!(outcome.text, text);
        }
    }
}
