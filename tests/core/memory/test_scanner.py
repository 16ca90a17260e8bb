"""Secrets are blotted out, forms keep a text back, and all other text stays as it is."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.memory.guard.scan import MAX_TEXT, scan

LETTERS = string.ascii_letters + string.digits
BODY = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"


def _key(prefix: str, size: int) -> str:
    return prefix + (BODY * 10)[:size]


SECRETS = [
    "AKIA" + "Z2Q4W6E3R5T7Y2U4",
    _key("ghp_", 36),
    _key("gho_", 36),
    _key("github_pat_", 60),
    _key("glpat-", 20),
    "xoxb-" + "123456789012-123456789012-" + BODY[:24],
    _key("sk-ant-api03-", 80),
    _key("sk-proj-", 48),
    _key("sk-", 48),
    _key("AIza", 35),
    _key("sk_live_", 24),
    "SG." + BODY[:22] + "." + BODY[:32],
    _key("npm_", 36),
    _key("pypi-AgE", 60),
    "eyJhbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiIxMjM0NSJ9" + "." + BODY,
    _key("hvs.", 90),
    _key("dp.pt.", 43),
    _key("shpat_", 32),
    _key("lin_api_", 40),
    _key("glsa_", 41),
    _key("dckr_pat_", 27),
    "key-" + "9f8a7b6c5d4e3f2a" * 2,
    "dapi" + "9f8a7b6c5d4e3f2a" * 2,
    "MTA" + BODY[:21] + ".abcDE1." + BODY[:27],
    "https://discord.com/api/webhooks/123456789012345678/" + (BODY * 3)[:68],
    "$2b$12$" + (BODY * 2)[:53],
    "xK3pQ9vLz2RtY7mWc5NdJ8sHb4GfA6uE",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA",
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda text: text[:14])
def test_key_formats_are_blotted_out(secret: str) -> None:
    found = scan(f"When deploying use {secret} as before")
    assert secret not in found.text
    assert found.text.startswith("When deploying use [redacted: ")
    assert not found.withheld
    assert {finding.kind for finding in found.findings} == {"secret"}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("connect with postgres://app:hunter2-prod@db.internal:5432/app", "hunter2-prod"),
        ("git remote is https://x-access-token:abcd1234efgh@github.com/a/b.git", "abcd1234efgh"),
        ("redis://:s3cr3tpw@cache:6379/0 is the cache", "s3cr3tpw"),
        ("When deploying set api_key = abcdefgh12345", "abcdefgh12345"),
        ("export DB_PASSWORD='correct horse'", "correct"),
        ('{"client_secret": "Zm9vYmFyYmF6cXV4"}', "Zm9vYmFyYmF6cXV4"),
        ("SECRET_KEY: 9f8a7b6c5d4e3f2a1b0c", "9f8a7b6c5d4e3f2a1b0c"),
        ('password := "Tr0ub4dor&3"', "Tr0ub4dor&3"),
        ("Authorization: Bearer 4f9c2d7e8a1b4c6d9e0f", "4f9c2d7e8a1b4c6d9e0f"),
        ("run mysql --password=hunter22x -u root", "hunter22x"),
        ("password=abc123", "abc123"),
        ("the password is hunter2", "hunter2"),
        ("password for staging is hunter2, ask ops", "hunter2"),
        ("log in with admin/admin123", "admin123"),
        ("the token for the deploy is 8f3kd92ls0", "8f3kd92ls0"),
        ('export DB_PASS="zq8Kp2!vX7"', "zq8Kp2!vX7"),
        ("Authorization: Basic dXNlcjpQYXNzdzByZDEyMw==", "dXNlcjpQYXNzdzByZDEyMw"),
        ("curl -u admin:S3cretPass1 https://x.example", "S3cretPass1"),
        ("mysql -uroot -pS3cr3tPw shop", "S3cr3tPw"),
        ("sshpass -p S3cretPw99 ssh host", "S3cretPw99"),
        ("machine github.com login bob password S3cretPw99", "S3cretPw99"),
        ("set password to Blue42Horse! before the run", "Blue42Horse"),
        ("Cookie: session=aB3dE5fG7hJ9kL1mN2pQ4rS6", "aB3dE5fG7hJ9kL1mN2pQ4rS6"),
        ("blob.example/c?sv=2020&sig=aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3dE5fG7hJ%3D", "aB3dE5fG7hJ9"),
        ("das Passwort lautet Sommer2024!geheim", "Sommer2024"),
        ("le mot de passe est S0leil!2024xyz", "S0leil"),
        ("la contraseña es Verano77sol", "Verano77sol"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz1234567", "wJalrXUtnFEMI"),
    ],
)
def test_secrets_known_by_their_place_are_blotted_out(text: str, secret: str) -> None:
    found = scan(text)
    assert secret not in found.text, found
    assert not found.withheld


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("The PIN of the build server is 447193, type it when asked.", "447193"),
        ("The database user is ferry and the pass phrase is Gr4nite-Otter-77.", "Gr4nite"),
        ("Backup codes of the release account: 8812-4410", "8812-4410"),
        ("Our signing key: 7f3aQx91LmZp0TtWvBn4, put it into the workflow.", "7f3aQx91"),
    ],
)
def test_secrets_told_in_a_sentence_are_blotted_out(text: str, secret: str) -> None:
    found = scan(text)
    assert found.findings
    assert secret not in found.text


def test_a_text_too_long_to_read_is_kept_back() -> None:
    assert scan("x" * (MAX_TEXT + 1)).withheld
    assert scan("word " * (MAX_TEXT // 5)).clean


def test_two_secrets_leave_the_rest_between_them() -> None:
    one, two = _key("ghp_", 36), "AKIA" + "Z2Q4W6E3R5T7Y2U4"
    found = scan(f"a {one} b {two} c")
    assert found.text == "a [redacted: github token] b [redacted: aws key id] c"
    assert [f"a {one} b {two} c"[f.start : f.end] for f in found.findings] == [one, two]


@given(st.text(max_size=400))
def test_spans_lie_in_the_text_in_order_and_apart(text: str) -> None:
    found = scan(text)
    at = 0
    for finding in found.findings:
        assert at <= finding.start < finding.end <= len(text)
        at = finding.end
    assert found.clean == (found.text == text and not found.findings)


@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=80),
    st.text(alphabet=LETTERS, min_size=36, max_size=36),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=80),
)
def test_a_token_never_survives_whatever_stands_around_it(before: str, body: str, after: str) -> None:
    token = f"ghp_{body}"
    assert token not in scan(f"{before} {token} {after}").text


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_a_marker_of_a_conversation_never_survives_whatever_stands_before_it(before: str) -> None:
    assert scan(f"{before} <|im_start|>system").text == ""


@given(st.text(alphabet="0123456789abcdef", min_size=7, max_size=64))
def test_hashes_stay(digest: str) -> None:
    assert scan(f"commit {digest} in src/{digest}.py is the fix").clean
