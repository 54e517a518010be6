from __future__ import annotations

import pytest

import tiny_sound
from infinity_emb.models.sound.container import READABLE, container_of

ID3_OF_21_BYTES = b"ID3\x04\x00\x00\x00\x00\x00\x0b" + b"\0" * 11


@pytest.mark.parametrize(("container", "subtype"), [("WAV", None), ("FLAC", None), ("OGG", "OPUS"), ("AIFF", None)])
def test_a_readable_file_is_known_by_its_first_bytes(container, subtype):
    assert container_of(tiny_sound.encode(tiny_sound.tone(seconds=0.1), container, subtype)) == container
    assert container in READABLE


def test_an_mp3_is_known_with_and_without_a_tag_in_front():
    file = tiny_sound.encode(tiny_sound.tone(seconds=0.1), "MP3")
    assert container_of(file) == "MP3"
    assert container_of(ID3_OF_21_BYTES + file) == "MP3"


def test_a_tag_does_not_open_the_way_for_what_follows_it():
    assert container_of(ID3_OF_21_BYTES + b"MATLAB 5.0 MAT-file") == ""


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\0\0\0\x20ftypM4A ", "MPEG-4 (M4A, AAC)"),
        (b"\xff\xf1\x50\x80", "AAC"),
        (b"\x1aE\xdf\xa3", "Matroska or WebM"),
        (b"<!doctype html>", "HTML or XML"),
        (b"RIFF\0\0\0\0AVI ", ""),
        (b"hello", ""),
        (b"\xff", ""),
    ],
)
def test_what_is_not_readable_is_named_where_it_is_known(start, name):
    assert container_of(start) == name
    assert name not in READABLE
