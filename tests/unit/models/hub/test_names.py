from __future__ import annotations

import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.names import check_repository_id, check_revision, is_path_like, is_safe_file_name


@pytest.mark.parametrize("text", ["./x", "../x", "/x", "~/x", "~", ".", "a/b/c", "a/", "C:\\models\\x", "a\\b", "C:/x"])
def test_what_can_only_be_a_path_is_one(text):
    assert is_path_like(text)


@pytest.mark.parametrize("text", ["bert-base-uncased", "BAAI/bge-m3", "a.b/c_d"])
def test_repository_ids_are_no_paths(text):
    assert not is_path_like(text)
    check_repository_id(text)


@pytest.mark.parametrize("text", ["a b", "a/b?c", "a..b", "a--b/c", "-a/b", "a/b.", "ä/b", "a/" + "b" * 97, "a\n", ""])
def test_malformed_repository_ids_are_refused(text):
    with pytest.raises(CheckpointError, match="owner/name"):
        check_repository_id(text)


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/1", "a" * 40])
def test_branches_tags_and_commits_are_revisions(revision):
    check_revision(revision)


@pytest.mark.parametrize("revision", ["", "../x", "a/../b", "/etc", "a b", "a//b", "\\x"])
def test_revisions_that_would_leave_the_cache_are_refused(revision):
    with pytest.raises(CheckpointError, match="revision"):
        check_revision(revision)


@pytest.mark.parametrize("name", ["config.json", "1_Pooling/config.json", "a..b", "..a/b"])
def test_ordinary_file_names_are_safe(name):
    assert is_safe_file_name(name)


@pytest.mark.parametrize("name", ["", "../x", "a/../x", "/x", "a//b", "a/", "./x", "C:x", "a\\..\\x", "a\0b", "x\n"])
def test_names_that_leave_the_folder_are_unsafe(name):
    assert not is_safe_file_name(name)
