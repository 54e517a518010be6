from __future__ import annotations

import uuid

from infinity_emb.server.identity import new_id


def test_names_are_uuids_and_never_the_same():
    names = [new_id() for _ in range(1000)]
    assert len(set(names)) == 1000
    assert {uuid.UUID(name).version for name in names} == {4}
    assert [str(uuid.UUID(name)) for name in names] == names
