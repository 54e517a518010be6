"""Reads the routes of a Router: which modules a query goes through, and which a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.files import check_inside, join

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import Repository

FILE = "router_config.json"
ROUTER, FORMER = "Router", "Asym"
QUERY, DOCUMENT = "query", "document"


@dataclass(frozen=True, slots=True)
class Routes:
    """What the file of a Router says.

    Attributes:
        file: Its path, for messages.
        modules: Of each route in order, as type and folder.
        default: The route of an input of which nothing is said; None if there is none.
    """

    file: str
    modules: dict[str, list[tuple[str, str]]]
    default: str | None


def read_routes(repository: Repository, folder: str, *, former: bool = False) -> Routes:
    """The routes of a Router in the order of its file.

    Without `default_route` the first one is it, unless `allow_empty_key` forbids that. `former` is an Asym, which left
    an input of which nothing is said as it was: it has no default but one that is written.

    Raises:
        CheckpointError: No routes, routes by modality, or modules that are not there.
    """
    config = repository.config(join(folder, FILE))
    if not config.exists:
        config = repository.config(join(folder, "config.json"), required=True)
    types: dict[str, Any] = config.section("types").data
    structure: dict[str, Any] = config.section("structure").data
    if not structure:
        raise config.error("structure", "there are no routes. Name the modules of each, or download it again.")
    modules = {}
    for name, ids in structure.items():
        if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one in types for one in ids):
            raise config.error(f"structure.{name}", f"{ids!r} is no list of the modules under `types`.")
        modules[name] = [(str(types[one]), join(folder, check_inside(config.name, "types", one))) for one in ids]
    parameters = config.section("parameters")
    if parameters.data.get("route_mappings"):
        raise config.error("parameters.route_mappings", "routes by modality are not supported. Remove them.")
    default = parameters.text("default_route")
    if default is None and parameters.flag("allow_empty_key", default=True) and not former:
        default = next(iter(modules))
    if default is not None and default not in modules:
        raise config.error("parameters.default_route", f"{default!r} is none of the routes {', '.join(modules)}.")
    return Routes(config.name, modules, default)


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
