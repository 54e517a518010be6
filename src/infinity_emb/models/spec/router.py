"""Reads a Router of a sparse encoder: documents go through the model, queries through a table of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.files import check_inside, join

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import Repository

FILE = "router_config.json"
QUERY, DOCUMENT = "query", "document"


def read_routes(repository: Repository, folder: str) -> dict[str, list[tuple[str, str]]]:
    """For `query` and `document` the modules in order, each as its type and its folder.

    Raises:
        CheckpointError: Other routes, or none.
    """
    config = repository.config(join(folder, FILE))
    if not config.exists:
        config = repository.config(join(folder, "config.json"), required=True)
    types: dict[str, Any] = config.section("types").data
    structure: dict[str, Any] = config.section("structure").data
    if set(structure) != {QUERY, DOCUMENT}:
        raise config.error("structure", f"routes {sorted(structure)} are not supported. Supported: query, document.")
    parameters = config.section("parameters")
    if parameters.data.get("route_mappings"):
        raise config.error("parameters.route_mappings", "routes by modality are not supported. Remove them.")
    if parameters.text("default_route") not in {None, DOCUMENT}:
        raise config.error("parameters.default_route", "only 'document' is supported.")
    routes = {}
    for name, ids in structure.items():
        if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one in types for one in ids):
            raise config.error(f"structure.{name}", f"{ids!r} is no list of the modules under `types`.")
        routes[name] = [(str(types[one]), join(folder, check_inside(config.name, "types", one))) for one in ids]
    return routes


def check_same_tokenizer(repository: Repository, first: str, second: str) -> None:
    """Raise unless two folders hold the same tokenizer: one is read for both.

    Raises:
        CheckpointError: They differ, or one is missing.
    """
    names = [join(folder, "tokenizer.json") for folder in (first, second)]
    try:
        contents = [repository.path(name).read_bytes() for name in names]
    except OSError as error:
        raise CheckpointError(f"{names[0]}: cannot be read ({error}). Download it again.", param=names[0]) from error
    if contents[0] != contents[1]:
        raise CheckpointError(
            f"{names[0]}: queries have another tokenizer than documents ({names[1]}), which is not supported.",
            param=names[0],
        )
