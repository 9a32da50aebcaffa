"""Keys and tokens as PyJWT and cryptography make them, for tokens.rs.

Usage: tokens.py DIRECTORY. Writes the manager's key files there, and prints the tokens:
{"good": {name: token}, "read": {name: token}, "bad": {name: token}}.
"""

import base64
import json
import sys
import time

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

directory = sys.argv[1]
now = int(time.time())
AUDIENCE = "stayput-test"
ISSUER = "https://kubernetes.default.svc"
SUBJECT = "system:serviceaccount:search:stayput"


def write(name, content):
    with open(f"{directory}/{name}", "wb") as file:
        file.write(content)


def pem(key):
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


shared = b"a shared key of thirty-two bytes, or more"
keys = {
    "RS256": rsa_key(),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
issuer, other_rsa = rsa_key(), rsa_key()
jwk = jwt.algorithms.RSAAlgorithm.to_jwk(issuer.public_key())
jwk = (json.loads(jwk) if isinstance(jwk, str) else jwk) | {"kid": "issuer-1", "use": "sig", "alg": "RS256"}
jwk.pop("key_ops", None)
pems = {name: pem(key) for name, key in keys.items()}
write("shared.key", shared)
write("public.pem", b"".join(pems.values()))
write("jwks.json", json.dumps({"keys": [jwk]}).encode())

own = {"sub": "pyjwt", "aud": AUDIENCE, "scope": "es:control", "iat": now, "exp": now + 600}
# What a projected service-account token says.
projected = {
    "aud": [AUDIENCE],
    "exp": now + 3000,
    "iat": now,
    "iss": ISSUER,
    "jti": "5e0fb7a4-9e3a-4d9a-9b6c-1a9f3a4b0f53",
    "kubernetes.io": {
        "namespace": "search",
        "pod": {"name": "stayput-0", "uid": "b2f0f7de-6cf0-4c3a-8c21-7ac6c4aa33a5"},
        "serviceaccount": {"name": "stayput", "uid": "6cf04c3a-b2f0-f7de-8c21-7ac6c4aa33a5"},
    },
    "nbf": now,
    "sub": SUBJECT,
}
kid = {"kid": "issuer-1"}


def without(claims, name):
    return {key: value for key, value in claims.items() if key != name}


def encode(claims, key=shared, algorithm="HS256", headers=None):
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


def with_public_key_as_secret(name):
    """HS256 keyed with public knowledge; PyJWT refuses to make such a token, so by hand."""
    import hashlib
    import hmac

    part = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=")
    text = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(own).encode())
    return (text + b"." + part(hmac.new(pems[name], text, hashlib.sha256).digest())).decode()


good = {"HS256": encode(own), "service account": encode(projected, issuer, "RS256", kid)}
good |= {name: encode(own, key, name) for name, key in keys.items()}
# Keycloak, Vault and many libraries name the key; a file in PEM has no name.
good |= {f"{name} with kid": encode(own, key, name, {"kid": "vault-7"}) for name, key in keys.items()}
good["HS256 with kid"] = encode(own, headers={"kid": "vault-7"})
good["service account without kid"] = encode(projected, issuer, "RS256")
good["audience list"] = encode(own | {"aud": ["somebody", AUDIENCE]})

read = {"read scope": encode(own | {"scope": "es:read"}), "no scope of ours": None}
read["no scope of ours"] = encode(own | {"scope": "openid profile es:read"})

bad = {
    "expired": encode(own | {"exp": now - 120}),
    "not yet valid": encode(own | {"nbf": now + 300}),
    "good for too long": encode(own | {"exp": now + 3 * 3600}),
    "no expiry": encode(without(own, "exp")),
    "another audience": encode(own | {"aud": "stayput-other"}),
    "no audience": encode(without(own, "aud")),
    "another key": encode(own, b"another shared key of thirty-two bytes"),
    "HS512": encode(own, shared * 2, "HS512"),
    "alg none": encode(own, None, "none"),
    "RSA key as secret": with_public_key_as_secret("RS256"),
    "EC key as secret": with_public_key_as_secret("ES256"),
    "another RSA key": encode(own, other_rsa, "RS256"),
    "PS256": encode(own, keys["RS256"], "PS256"),
    "unknown kid": encode(projected, issuer, "RS256", {"kid": "issuer-2"}),
    "no kid, another key": encode(projected, other_rsa, "RS256"),
    "kid of the issuer, another key": encode(projected, other_rsa, "RS256", kid),
    "another issuer": encode(projected | {"iss": "https://example.com"}, issuer, "RS256", kid),
    "no issuer": encode(without(projected, "iss"), issuer, "RS256", kid),
    "a service account not listed": encode(
        projected | {"sub": "system:serviceaccount:search:default"}, issuer, "RS256", kid
    ),
    "critical extension": encode(own, headers={"crit": ["exp"]}),
    "torn": encode(own)[:-4],
    "no token": "e30.e30.",
}
print(json.dumps({"good": good, "read": read, "bad": bad}))
