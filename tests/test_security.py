"""Keys, masks, encryption and signed links."""

import base64
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from voiceapi import masking, security
from voiceapi.security import SecretError, Vault

VAULT = Vault(b"0123456789abcdef0123456789abcdef")
OTHER = Vault(b"another secret of the same length")


def test_a_new_key_is_va_and_43_characters_and_never_the_same() -> None:
    keys = {security.new_api_key() for _ in range(50)}

    assert len(keys) == 50
    assert all(re.fullmatch(r"va_[A-Za-z0-9_-]{43}", key) for key in keys)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", security.new_token())


def test_the_prefix_and_hash_of_a_key() -> None:
    assert security.key_prefix("va_abcdefgh") == "va_abcde"
    assert security.hash_key("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@given(st.text(st.characters()))
def test_any_text_has_a_hash(text: str) -> None:
    assert re.fullmatch("[0-9a-f]{64}", security.hash_key(text))


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ("secret-token", "********oken"),
        ("12345", "*2345"),
        ("1234", "****"),
        ("a", "*"),
        ("", ""),
        (None, None),
        (["secret-token", "abc", ""], ["********oken", "***", ""]),
        ([], []),
        (1234567, "***4567"),
    ],
)
def test_mask(value: Any, masked: Any) -> None:
    assert masking.mask(value) == masked


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        ({"token": "***2345"}, {"token": "xyz2345"}),
        ({"token": "***9999"}, {"token": "***9999"}),
        ({"token": "new"}, {"token": "new"}),
        ({"token": None}, {"token": None}),
        ({}, {}),
        ({"account": "*2345", "token": "***2345"}, {"account": "*2345", "token": "xyz2345"}),
        ({"unknown": "****"}, {"unknown": "****"}),
    ],
)
def test_only_a_secret_that_equals_its_mask_is_unmasked(incoming: dict[str, Any], expected: dict[str, Any]) -> None:
    stored = {"token": "xyz2345", "account": "12345"}

    assert masking.unmask_fields(incoming, stored, {"token", "unknown"}) == expected


@given(st.text())
def test_what_is_encrypted_can_be_decrypted(text: str) -> None:
    token = VAULT.encrypt(text)

    assert VAULT.decrypt(token) == text
    assert len(text) < 8 or text not in token


@given(st.binary(min_size=32, max_size=80), st.text())
def test_the_key_is_that_of_the_library_and_the_signature_that_of_a_token(secret: bytes, text: str) -> None:
    derived = HKDF(SHA256(), length=32, salt=None, info=b"voiceapi credentials").derive(secret)
    assert security._fernet_key(secret) == derived
    token = Vault(secret).encrypt(text)
    assert Vault(secret).made(token)
    assert Vault(b"another" * 5, secret).made(token)
    assert not Vault(b"another" * 5).made(token)


@given(st.text() | st.binary().map(lambda content: base64.urlsafe_b64encode(content).decode()))
def test_no_other_text_was_made_with_a_secret(text: str) -> None:
    assert not Vault(b"x" * 32).made(text)


def test_the_same_secret_decrypts_after_a_restart() -> None:
    assert Vault(b"secret").decrypt(Vault(b"secret").encrypt("token")) == "token"


@pytest.mark.parametrize("token", [OTHER.encrypt("token"), "no token", ""], ids=["other", "no token", "empty"])
def test_a_token_of_another_secret_is_an_error(token: str) -> None:
    with pytest.raises(SecretError) as error:
        VAULT.decrypt(token)

    assert str(error.value) == (
        "A stored credential can't be decrypted, because it was encrypted with another secret. "
        "Restore that secret, or enter the credentials again."
    )


PAYLOAD = {"run": 7, "kind": "transcript", "note": "ü" * 400}
LINK = VAULT.sign(PAYLOAD, "download", expires_at=1000.0)


def test_a_link_carries_its_payload_in_url_safe_characters() -> None:
    assert VAULT.verify(LINK, "download", now=999.9) == PAYLOAD
    assert re.fullmatch(r"[A-Za-z0-9._-]+", LINK)


@pytest.mark.parametrize(
    ("vault", "token", "purpose", "now"),
    [
        pytest.param(VAULT, LINK, "download", 1000.0, id="expired"),
        pytest.param(VAULT, LINK, "preview", 0.0, id="another purpose"),
        pytest.param(OTHER, LINK, "download", 0.0, id="another secret"),
        pytest.param(VAULT, LINK[:-1], "download", 0.0, id="cut"),
        pytest.param(VAULT, "x" + LINK, "download", 0.0, id="changed"),
        pytest.param(VAULT, "", "download", 0.0, id="empty"),
        pytest.param(VAULT, "\ud800", "download", 0.0, id="not text"),
    ],
)
def test_a_link_that_is_not_good(vault: Vault, token: str, purpose: str, now: float) -> None:
    assert vault.verify(token, purpose, now) is None


@given(st.text())
def test_no_text_is_good_by_chance(token: str) -> None:
    assert VAULT.verify(token, "download", now=0.0) is None


def test_a_missing_secret_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "voice.db.secret"

    secret = security.read_or_create_secret(path)

    assert security.read_or_create_secret(path) == secret
    assert re.fullmatch(rb"[A-Za-z0-9_-]{64}", secret)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_all_who_start_at_once_get_the_same_secret(tmp_path: Path) -> None:
    for turn in range(20):
        path = tmp_path / str(turn)
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(security.read_or_create_secret, [path] * 8))
        assert found == {path.read_bytes().strip()}
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.parametrize("content", [b"", b"short\n"])
def test_a_file_without_a_secret_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)

    with pytest.raises(SecretError) as error:
        security.read_or_create_secret(path)

    assert str(error.value) == (
        f"The file {path} must hold a secret of at least 32 characters. Restore it from a backup."
    )
    assert path.read_bytes() == content
