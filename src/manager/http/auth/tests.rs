//! Every kind of token that must be refused, and every kind that must be accepted.

mod bearer;
pub(crate) mod keys;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use keys::{RSA_PUBLIC, SHARED, Signer, ed25519_jwk, key_id, p256_jwk, rsa_jwk};
use stayput_http::jwt::{Grant, Scopes, mint, pod_audience};

const AUDIENCE: &str = "stayput:search/u-1";
const ISSUER: &str = "https://kubernetes.default.svc";
const SUBJECT: &str = "system:serviceaccount:search:stayput";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn rules() -> Rules {
    Rules {
        pod_audience: Some(AUDIENCE.to_owned()),
        audience: None,
        issuer: Some(ISSUER.to_owned()),
        subjects: vec![(SUBJECT.to_owned(), Scopes::CONTROL)],
    }
}

fn shared_only() -> Tokens {
    Tokens::new(read_shared(SHARED).unwrap(), &rules())
}

fn claims() -> Value {
    json!({"sub": "ops", "aud": AUDIENCE, "exp": now() + 600, "scope": "es:read"})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn hs256() -> Value {
    json!({"alg": "HS256", "typ": "JWT"})
}

/// Why a token that is signed with the shared key and has these claims is refused.
#[track_caller]
fn refused(claims: &Value) -> &'static str {
    let token = Signer::shared().token(&hs256(), claims);
    shared_only().verify(&token, now()).unwrap_err().check
}

fn accepted(claims: &Value) -> Caller {
    shared_only().verify(&Signer::shared().token(&hs256(), claims), now()).unwrap()
}

#[test]
fn a_sound_token_says_who_and_what() {
    let caller = accepted(&claims());
    assert_eq!((&*caller.subject, caller.scopes), ("jwt:ops", Scopes::READ));
    let caller = accepted(&with("scope", json!("openid es:read es:control")));
    assert_eq!(caller.scopes, Scopes::CONTROL);
    let caller = accepted(&with("scope", json!(["es:control"])));
    assert!(caller.scopes.may_read() && caller.scopes.may_control());
    assert_eq!(accepted(&without("scope")).scopes, Scopes::NONE);
    assert_eq!(&*accepted(&without("sub")).subject, "jwt:shared-key");
    accepted(&with("aud", json!(["another", AUDIENCE])));
    accepted(&with("nbf", json!(now() + 20)));
    accepted(&with("exp", json!(now() - 20)));
    accepted(&with("exp", json!(now() + 3600)));
}

#[test]
fn claims_that_do_not_hold_are_refused() {
    assert_eq!(refused(&with("exp", json!(now() - 60))), "expired");
    assert_eq!(refused(&with("nbf", json!(now() + 60))), "not yet valid");
    assert_eq!(refused(&with("exp", json!(now() + 3700))), "valid for too long");
    assert_eq!(refused(&with("exp", json!(u64::MAX))), "valid for too long");
    assert_eq!(refused(&with("exp", json!(1e300))), "a claim is missing");
    assert_eq!(refused(&without("exp")), "unreadable");
    assert_eq!(refused(&with("exp", json!("soon"))), "unreadable");
    assert_eq!(refused(&with("aud", json!("stayput:search/u-2"))), "another audience");
    assert_eq!(refused(&with("aud", json!([]))), "another audience");
    assert_eq!(refused(&without("aud")), "a claim is missing");
    assert_eq!(refused(&with("nbf", json!("later"))), "a claim of the wrong type");
    assert_eq!(refused(&with("sub", json!(7))), "unreadable");
    assert_eq!(refused(&with("sub", json!(""))), "unusable subject");
    assert_eq!(refused(&with("sub", json!("a\nb"))), "unusable subject");
    assert_eq!(refused(&with("sub", json!("a".repeat(300)))), "unusable subject");
}

#[test]
fn another_key_another_algorithm_or_no_signature_is_refused() {
    let refused = |signer: &Signer, header: &Value| {
        shared_only().verify(&signer.token(header, &claims()), now()).unwrap_err().check
    };
    let other = Signer::Shared(b"another key of at least 32 bytes!".to_vec());
    assert_eq!(refused(&other, &hs256()), "wrong signature");
    assert_eq!(refused(&Signer::Unsigned, &hs256()), "wrong signature");
    for alg in ["none", "None", "NONE", "", "HS1"] {
        assert_eq!(refused(&Signer::Unsigned, &json!({"alg": alg})), "unreadable header", "{alg}");
    }
    let no_key = "no key of that id and algorithm";
    assert_eq!(refused(&Signer::shared(), &json!({"alg": "HS512"})), no_key);
    assert_eq!(refused(&Signer::rsa(), &json!({"alg": "RS256"})), no_key);
    let critical = json!({"alg": "HS256", "crit": ["exp"]});
    assert_eq!(refused(&Signer::shared(), &critical), "critical extensions");
}

#[test]
fn a_public_key_is_no_shared_key() {
    // The well-known confusion of algorithms: signed as HS256 with the text of the public key as
    // the secret.
    let tokens = Tokens::new(read_public(RSA_PUBLIC).unwrap(), &rules());
    for secret in [RSA_PUBLIC, RSA_PUBLIC.trim_ascii()] {
        let token = Signer::Shared(secret.to_vec()).token(&hs256(), &claims());
        assert!(tokens.verify(&token, now()).is_err());
        let forged = Signer::Shared(secret.to_vec()).token(&json!({"alg": "RS256"}), &claims());
        assert_eq!(tokens.verify(&forged, now()).unwrap_err().check, "wrong signature");
    }
    assert!(read_shared(RSA_PUBLIC).unwrap_err().to_string().contains("--jwt-public-key"));
}

#[test]
fn public_keys_of_every_kind_verify() {
    let p256 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let file = [RSA_PUBLIC, p256.public_key_pem().as_bytes(), ed25519.public_key_pem().as_bytes()]
        .concat();
    let tokens = Tokens::new(read_public(&file).unwrap(), &rules());
    let cases = [
        ("RS256", Signer::rsa()),
        ("ES256", Signer::p256(&p256)),
        ("EdDSA", Signer::ed25519(&ed25519)),
    ];
    for (alg, signer) in &cases {
        let token = signer.token(&json!({"alg": alg}), &claims());
        let caller = tokens.verify(&token, now()).unwrap();
        assert_eq!((&*caller.subject, caller.scopes), ("jwt:ops", Scopes::READ), "{alg}");
    }
    let mixed = cases[0].1.token(&json!({"alg": "ES256"}), &claims());
    assert_eq!(tokens.verify(&mixed, now()).unwrap_err().check, "wrong signature");
}

#[test]
fn keys_of_other_kinds_and_broken_files_are_named() {
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let refusal = |file: &[u8]| read_public(file).unwrap_err().to_string();
    assert!(refusal(p384.public_key_pem().as_bytes()).contains("Ed25519, P-256 or RSA"));
    assert!(refusal(b"").contains("no PUBLIC KEY"));
    assert!(refusal(keys::RSA_PRIVATE).contains("no PUBLIC KEY"));
    assert!(refusal(b"-----BEGIN PUBLIC KEY-----\n%%\n-----END PUBLIC KEY-----\n").contains("PEM"));
    assert!(read_shared(b"short").unwrap_err().to_string().contains("5 bytes"));
    assert!(read_key_set(b"").unwrap_err().to_string().contains("JSON Web Key Set"));
    assert!(read_key_set(br#"{"keys":[]}"#).unwrap_err().to_string().contains("no signing key"));
}

fn issuer_claims() -> Value {
    json!({"sub": SUBJECT, "aud": [AUDIENCE], "iss": ISSUER, "exp": now() + 600, "iat": now(),
        "kubernetes.io": {"namespace": "search", "serviceaccount": {"name": "stayput"}}})
}

fn key_set() -> (Tokens, rcgen::KeyPair, rcgen::KeyPair) {
    let p256 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let set = json!({"keys": [
        rsa_jwk(&key_id()), p256_jwk(&p256, "p"), ed25519_jwk(&ed25519, "e"),
        {"kty": "oct", "kid": "s", "alg": "HS256", "k": keys::b64(SHARED.trim_ascii())},
        {"kty": "EC", "crv": "P-521", "kid": "q", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "P-256", "kid": "short", "x": "AA", "y": "AA"},
        {"kty": "unheard-of", "kid": "u"},
    ]});
    let keys = read_key_set(set.to_string().as_bytes()).unwrap();
    assert_eq!(keys.len(), 3, "keys of other kinds are left out");
    (Tokens::new(keys, &rules()), p256, ed25519)
}

#[test]
fn projected_service_account_tokens_are_accepted() {
    let (tokens, p256, ed25519) = key_set();
    for (signer, header) in [
        (Signer::rsa(), json!({"alg": "RS256", "kid": key_id()})),
        (Signer::p256(&p256), json!({"alg": "ES256", "kid": "p"})),
        (Signer::ed25519(&ed25519), json!({"alg": "EdDSA", "kid": "e"})),
    ] {
        let caller = tokens.verify(&signer.token(&header, &issuer_claims()), now()).unwrap();
        assert_eq!((&*caller.subject, caller.scopes), (SUBJECT, Scopes::CONTROL));
    }
}

#[test]
fn an_issuer_s_tokens_are_held_to_issuer_audience_and_subject() {
    let (tokens, ..) = key_set();
    let header = json!({"alg": "RS256", "kid": key_id()});
    let refused = |header: &Value, name: &str, value: Value| {
        let mut claims = issuer_claims();
        claims[name] = value;
        tokens.verify(&Signer::rsa().token(header, &claims), now()).unwrap_err().check
    };
    let other = "system:serviceaccount:search:other";
    assert_eq!(refused(&header, "sub", json!(other)), "subject is not allowed");
    assert_eq!(refused(&header, "iss", json!("https://other")), "another issuer");
    assert_eq!(refused(&header, "iss", Value::Null), "a claim is missing");
    assert_eq!(refused(&header, "sub", Value::Null), "a claim is missing");
    assert_eq!(refused(&header, "aud", json!(["vault"])), "another audience");
    let no_key = "no key of that id and algorithm";
    for header in [
        json!({"alg": "RS256", "kid": "unknown"}),
        json!({"alg": "RS256", "kid": "p"}),
        json!({"alg": "HS256", "kid": "s"}),
    ] {
        assert_eq!(refused(&header, "scope", json!("es:control")), no_key);
    }
    let shared = Signer::shared().token(&json!({"alg": "HS256", "kid": "s"}), &issuer_claims());
    assert_eq!(tokens.verify(&shared, now()).unwrap_err().check, no_key);
}

#[test] // proves ACCESS-5
fn an_id_selects_among_keys_and_its_absence_excludes_none() {
    let verify = |keys, signer: &Signer, header: Value, claims: &Value| {
        let token = signer.token(&header, claims);
        Tokens::new(keys, &rules()).verify(&token, now()).map_err(|rejection| rejection.check)
    };
    // Keys without an id: files hold none, and most issuers name one in their tokens.
    let named = json!({"alg": "RS256", "kid": "any"});
    assert!(
        verify(read_public(RSA_PUBLIC).unwrap(), &Signer::rsa(), named.clone(), &claims()).is_ok()
    );
    let shared = json!({"alg": "HS256", "kid": "any"});
    assert!(
        verify(read_shared(SHARED).unwrap(), &Signer::shared(), shared.clone(), &claims()).is_ok()
    );
    let other = Signer::Shared(b"another key of at least 32 bytes!".to_vec());
    let refused = verify(read_shared(SHARED).unwrap(), &other, shared, &claims());
    assert_eq!(refused, Err("wrong signature"));
    let mut nameless = rsa_jwk("x");
    nameless.as_object_mut().unwrap().remove("kid");
    let nameless = json!({"keys": [nameless]}).to_string();
    assert!(
        verify(read_key_set(nameless.as_bytes()).unwrap(), &Signer::rsa(), named, &issuer_claims())
            .is_ok()
    );
    // A token without an id: every key of its algorithm is tried.
    let set = json!({"keys": [rsa_jwk("a"), rsa_jwk("b")]}).to_string();
    let set = || read_key_set(set.as_bytes()).unwrap();
    assert!(verify(set(), &Signer::rsa(), json!({"alg": "RS256"}), &issuer_claims()).is_ok());
    let unknown =
        verify(set(), &Signer::rsa(), json!({"alg": "RS256", "kid": "c"}), &issuer_claims());
    assert_eq!(unknown, Err("no key of that id and algorithm"));
}

#[test] // proves ACCESS-5
fn the_log_gets_what_was_found_and_what_was_expected() {
    let why = |claims: &Value| {
        let token = Signer::shared().token(&hs256(), claims);
        let rejection = shared_only().verify(&token, now()).unwrap_err();
        let text = rejection.to_string();
        assert!(!text.contains(&token) && !text.contains("0123456789abcdef"), "{text}");
        text
    };
    // The clock may go on by a second in between.
    let expired = why(&with("exp", json!(now() - 60)));
    assert!(["expired: 60 s ago", "expired: 61 s ago"].contains(&&*expired), "{expired}");
    let early = why(&with("nbf", json!(now() + 60)));
    assert!(["not yet valid: for 60 s", "not yet valid: for 59 s"].contains(&&*early), "{early}");
    assert_eq!(
        why(&with("aud", json!(["a", "b"]))),
        "another audience: ['a', 'b'], expected 'stayput:search/u-1'"
    );
    assert_eq!(why(&without("aud")), "a claim is missing: aud");
    assert!(why(&without("exp")).contains("missing field `exp`"));
    assert!(why(&with("exp", json!(now() + 7200))).contains("at most 3600 s"));
    let (tokens, ..) = key_set();
    let issuer = |header: Value, name: &str, value: &str| {
        let mut claims = issuer_claims();
        claims[name] = json!(value);
        let token = Signer::rsa().token(&header, &claims);
        tokens.verify(&token, now()).unwrap_err().to_string()
    };
    let known = json!({"alg": "RS256", "kid": key_id()});
    assert_eq!(
        issuer(known.clone(), "sub", "system:serviceaccount:a:b"),
        "subject is not allowed: 'system:serviceaccount:a:b' is not in --allow-subject"
    );
    assert!(issuer(known, "iss", "https://other").contains("expected 'https://kubernetes"));
    assert_eq!(
        issuer(json!({"alg": "RS256", "kid": "k\n1"}), "sub", "a"),
        r"no key of that id and algorithm: id 'k\n1', RS256"
    );
}

#[test]
fn scopes_of_an_issuer_s_tokens_come_from_us_alone() {
    let mut rules = rules();
    rules.subjects = vec![(SUBJECT.to_owned(), Scopes::READ)];
    let set = json!({"keys": [rsa_jwk("k")]}).to_string();
    let tokens = Tokens::new(read_key_set(set.as_bytes()).unwrap(), &rules);
    let mut claims = issuer_claims();
    claims["scope"] = json!("es:control");
    let token = Signer::rsa().token(&json!({"alg": "RS256", "kid": "k"}), &claims);
    assert_eq!(tokens.verify(&token, now()).unwrap().scopes, Scopes::READ);
}

#[test]
fn a_configured_audience_never_loosens_the_pod_s() {
    let rules = Rules { audience: Some("stayput".into()), ..rules() };
    let tokens = Tokens::new(read_shared(SHARED).unwrap(), &rules);
    let token = Signer::shared().token(&hs256(), &with("aud", json!("stayput")));
    assert_eq!(tokens.verify(&token, now()).unwrap_err().check, "another audience");
    let set = json!({"keys": [rsa_jwk("k")]}).to_string();
    let tokens = Tokens::new(read_key_set(set.as_bytes()).unwrap(), &rules);
    let mut claims = issuer_claims();
    claims["aud"] = json!("stayput");
    let token = Signer::rsa().token(&json!({"alg": "RS256", "kid": "k"}), &claims);
    assert_eq!(tokens.verify(&token, now()).unwrap_err().check, "another audience");
}

#[test]
fn where_the_pod_is_not_known_the_configured_audience_holds() {
    let rules = Rules { pod_audience: None, audience: Some("stayput".into()), ..rules() };
    let tokens = Tokens::new(read_shared(SHARED).unwrap(), &rules);
    let token = |audience| Signer::shared().token(&hs256(), &with("aud", json!(audience)));
    assert!(tokens.verify(&token("stayput"), now()).is_ok());
    assert_eq!(tokens.verify(&token("other"), now()).unwrap_err().check, "another audience");
}

#[test]
fn a_remembered_token_is_still_held_to_its_time() {
    let tokens = shared_only();
    let token = Signer::shared().token(&hs256(), &claims());
    assert!(tokens.verify(&token, now()).is_ok());
    assert!(tokens.verify(&token, now()).is_ok());
    // The library uses the real clock; the cache uses the time of this test.
    assert_eq!(tokens.cache_len(), 1);
    let bad = format!("{}x", token);
    assert!(tokens.verify(&bad, now()).is_err());
    assert_eq!(tokens.cache_len(), 1, "refused tokens are not cached");
}

#[test]
fn minted_tokens_are_accepted() {
    let p256 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let grant = Grant {
        subject: "ops".into(),
        scopes: Scopes::CONTROL,
        audience: pod_audience("search", "u-1"),
        ttl: Duration::from_secs(300),
    };
    for (private, keys) in [
        (SHARED.to_vec(), read_shared(SHARED)),
        (p256.serialize_pem().into_bytes(), read_public(p256.public_key_pem().as_bytes())),
        (ed25519.serialize_pem().into_bytes(), read_public(ed25519.public_key_pem().as_bytes())),
    ] {
        let token = mint(&private, &grant, SystemTime::now()).unwrap();
        let caller = Tokens::new(keys.unwrap(), &rules()).verify(&token, now()).unwrap();
        assert_eq!((&*caller.subject, caller.scopes), ("jwt:ops", Scopes::CONTROL));
    }
    let refusal =
        |key: &[u8], grant: &Grant| mint(key, grant, SystemTime::now()).unwrap_err().to_string();
    let forever = Grant { ttl: Duration::from_secs(3601), ..grant.clone() };
    assert!(refusal(SHARED, &forever).contains("one hour"));
    assert!(refusal(RSA_PUBLIC, &grant).contains("private half"));
    assert!(refusal(keys::RSA_PRIVATE, &grant).contains("Ed25519 or P-256"));
    assert!(refusal(b"short", &grant).contains("at least 32"));
}

#[test]
fn scopes_are_read_by_name() {
    assert_eq!("read".parse(), Ok(Scopes::READ));
    assert_eq!("es:control".parse(), Ok(Scopes::CONTROL));
    assert_eq!("read,control".parse(), Ok(Scopes::CONTROL));
    for bad in ["", "write", "read,", "es:"] {
        assert!(
            bad.parse::<Scopes>().unwrap_err().to_string().contains("read or control"),
            "{bad:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_token_makes_it_panic_or_is_accepted(header: String, claims: String, tail: String) {
        let message = format!("{}.{}", keys::b64(&header), keys::b64(&claims));
        for token in [format!("{message}.{tail}"), message, tail] {
            let verdict = shared_only().verify(&token, now());
            prop_assert!(verdict.is_err());
        }
    }

    #[test]
    fn one_changed_character_makes_a_token_worthless(place: prop::sample::Index) {
        let token = Signer::shared().token(&hs256(), &claims());
        let place = place.index(token.len());
        // The last character has unused bits, which base64 readers either refuse or ignore.
        prop_assume!(place + 1 < token.len());
        let mut bytes = token.into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        let verdict = shared_only().verify(&changed, now());
        prop_assert!(verdict.is_err());
    }

    #[test]
    fn no_key_file_makes_it_panic(file: Vec<u8>, text: String, kty in "RSA|EC|OKP|oct") {
        for file in [&file[..], text.as_bytes()] {
            let _ = read_key_set(file);
            let _ = read_public(file);
            let _ = read_shared(file);
        }
        let key = json!({"kty": kty, "crv": "P-256", "kid": text, "n": text, "e": "AQAB",
            "x": text, "y": text, "k": text, "alg": text, "use": text});
        let _ = read_key_set(json!({"keys": [key]}).to_string().as_bytes());
    }
}

#[test]
fn a_kind_of_refusal_is_logged_once_in_a_while_and_counted() {
    let (log, begin) = (RefusalLog::default(), Instant::now());
    let admit = |check, after| log.admit(check, begin + Duration::from_millis(after));
    assert_eq!(admit("expired", 0), Some(0));
    for after in 0..1000 {
        assert_eq!(admit("expired", after), None);
    }
    assert_eq!(admit("wrong signature", 1), Some(0), "another kind");
    assert_eq!(admit("expired", 10_000), Some(1000));
    assert_eq!(admit("expired", 20_000), Some(0));
}

#[test]
fn long_parts_are_shortened_and_stay_on_one_line() {
    assert_eq!(shown("a\nb"), r"'a\nb'");
    assert_eq!(shown(&"ä".repeat(5000)).chars().count(), MAX_SHOWN + 1);
}

fn caller(name: &str) -> Caller {
    Caller { subject: Arc::from(name), scopes: Scopes::READ }
}

#[test]
fn a_token_is_remembered_no_longer_than_it_is_valid() {
    let mut cache = TokenCache::default();
    let token = TokenCache::fingerprint("a");
    cache.put(token, caller("a"), 100..=200);
    assert_eq!(cache.get(&token, 200), Some(caller("a")));
    assert_eq!(cache.get(&token, 201), None);
    assert_eq!(cache.get(&token, 99), None, "the clock was set back");
    assert_eq!(cache.get(&TokenCache::fingerprint("b"), 150), None);
}

#[test]
fn only_a_few_are_remembered() {
    let mut cache = TokenCache::default();
    for index in 0..100 {
        cache.put(TokenCache::fingerprint(&index.to_string()), caller("a"), 100..=200);
    }
    assert_eq!(cache.0.len(), CAPACITY);
    assert!(cache.get(&TokenCache::fingerprint("99"), 150).is_some());
}
