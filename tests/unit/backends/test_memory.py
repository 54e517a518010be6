from __future__ import annotations

import sys

import pytest

from infinity_emb.backends.memory import read_memory

MIB_BYTES = 1024 * 1024


@pytest.fixture
def machine(tmp_path):
    """A machine with 1000 MiB left, and a process that holds 100 MiB; `write` adds files."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("proc/meminfo", f"MemTotal: 9 kB\nMemAvailable:   {1000 * 1024} kB\nHugePages_Total:       0\n")
    write("proc/self/status", f"Name:\tpython\nVmRSS:\t  {100 * 1024} kB\n")
    write("proc/self/cgroup", "0::/a/b\n")
    return tmp_path, write


def available_mib(root):
    return read_memory(root).available_bytes // MIB_BYTES


def group(write, folder, limit, used_mib=0, cache_mib=0):
    write(f"sys/fs/cgroup/{folder}/memory.max", f"{limit}\n")
    write(f"sys/fs/cgroup/{folder}/memory.current", f"{used_mib * MIB_BYTES}\n")
    write(f"sys/fs/cgroup/{folder}/memory.stat", f"anon 5\ninactive_file {cache_mib * MIB_BYTES}\n")


def test_without_limits_it_is_what_the_machine_has(machine):
    root, _ = machine
    assert read_memory(root) == (100 * MIB_BYTES, 1000 * MIB_BYTES)


def test_a_group_allows_its_limit_less_what_cannot_be_dropped(machine):
    root, write = machine
    group(write, "a/b", 500 * MIB_BYTES, used_mib=300, cache_mib=50)
    assert available_mib(root) == 250


def test_the_tightest_of_the_groups_above_counts_too(machine):
    root, write = machine
    group(write, "a/b", "max")
    group(write, "a", 400 * MIB_BYTES, used_mib=390)
    group(write, ".", 800 * MIB_BYTES)
    assert available_mib(root) == 10


def test_a_container_that_sees_only_its_own_end_of_the_tree(machine):
    root, write = machine
    write("proc/self/cgroup", "0::/../../somewhere/on/the/host\n")
    group(write, ".", 300 * MIB_BYTES, used_mib=100)
    assert available_mib(root) == 200


def test_groups_of_version_1_count(machine):
    root, write = machine
    write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n")
    write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", str(200 * MIB_BYTES))
    write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", str(150 * MIB_BYTES))
    write("sys/fs/cgroup/memory/x/memory.stat", f"inactive_file 1\ntotal_inactive_file {20 * MIB_BYTES}\n")
    assert available_mib(root) == 70


def test_a_group_over_its_limit_leaves_nothing(machine):
    root, write = machine
    group(write, "a", 100 * MIB_BYTES, used_mib=120)
    assert available_mib(root) == 0


@pytest.mark.parametrize("missing", ["proc/meminfo", "proc/self/status", "proc/self/cgroup"])
def test_a_system_that_does_not_tell_gives_nothing(machine, missing):
    root, _ = machine
    (root / missing).unlink()
    assert read_memory(root) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_this_machine_tells():
    found = read_memory()
    assert found.resident_bytes > MIB_BYTES
    assert found.available_bytes >= 0
