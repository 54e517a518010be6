"""Takes an embedder with a Router apart: each route is a chain of modules, read as a checkpoint of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.family import EMBEDDER, read_family
from infinity_emb.models.spec.family import FILE as SAVED_FILE
from infinity_emb.models.spec.files import Repository
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.router import FORMER, ROUTER, read_routes
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.router import Routes

# Routes of these names are chosen by what an input is, and only texts are read.
_OTHER_MODALITIES = ("image", "audio", "video", "message")


@dataclass(frozen=True, slots=True)
class RoutesSpec:
    """The routes that a text may take.

    Attributes:
        default: That of a text of which nothing is said; None if it has to be said.
        by_name: What each is, in the order of the Router's file.
    """

    default: str | None
    by_name: dict[str, ModelSpec]

    @property
    def first(self) -> str:
        """The route that stands for the model where one has to."""
        return self.default or next(iter(self.by_name))


@dataclass(frozen=True, slots=True)
class _RouteRepository(Repository):
    """A repository as one route sees it: with the modules of this route in the place of the Router.

    Attributes:
        rows: Of modules.json.
    """

    rows: tuple[dict[str, Any], ...] = ()

    def json(self, name: str) -> Any:
        """As `Repository.json`."""
        # not super(): a dataclass with slots is another class than the one that its methods were written in
        return list(self.rows) if name == MODULES_FILE else Repository.json(self, name)


def find_routes(repository: Repository) -> tuple[dict[str, Repository], Routes] | None:
    """What each route of an embedder sees of its repository; None if there is no Router, or one of another family.

    Raises:
        CheckpointError: Two Routers, or a Router that cannot be honoured.
    """
    rows = repository.json(MODULES_FILE) if repository.checkpoint.path.is_dir() else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    kinds = [str(row.get("type")).rpartition(".")[2] for row in rows]
    places = [place for place, kind in enumerate(kinds) if kind in {ROUTER, FORMER}]
    if not places or read_family(repository.config(SAVED_FILE)) != EMBEDDER:
        return None
    if len(places) > 1:
        raise CheckpointError(f"{MODULES_FILE}: a second Router is not supported. Supported: one.", param=MODULES_FILE)
    place = places[0]
    if not str(rows[place]["type"]).startswith("sentence_transformers."):
        return None  # refused by name like any other foreign module
    folder = str(rows[place].get("path") or "")
    routes = read_routes(repository, "" if folder in {".", "./"} else folder, former=kinds[place] == FORMER)
    for name in routes.modules:
        if name in _OTHER_MODALITIES:
            raise CheckpointError(
                f"{routes.file}: structure: the route {name!r} reads something else than text, which is not supported. "
                "Supported: routes for texts, such as query and document.",
                param=f"{routes.file}:structure",
            )
    views: dict[str, Repository] = {}
    for name, modules in routes.modules.items():
        own = [{"type": kind, "path": path} for kind, path in modules]
        chain = (*rows[:place], *own, *rows[place + 1 :])
        views[name] = _RouteRepository(repository.checkpoint, repository.allow_pickle, chain)
    return views, routes


def join_routes(routes: Routes, specs: dict[str, ModelSpec]) -> ModelSpec:
    """The specification of the default route, with all of them beside it.

    Raises:
        CheckpointError: They give something else than vectors of texts, or vectors of different lengths.
    """
    for name, spec in specs.items():
        if spec.task is not Task.EMBED or spec.media or spec.heads is not None or spec.adapters:
            raise CheckpointError(
                f"{routes.file}: structure.{name}: this route gives something else than one vector a text, which is "
                "not supported. Supported: embedders of texts.",
                param=f"{routes.file}:structure.{name}",
            )
    if len({spec.dim for spec in specs.values()}) > 1:
        lengths = ", ".join(f"{name} {spec.dim}" for name, spec in specs.items())
        raise CheckpointError(
            f"{routes.file}: structure: the routes give vectors of different lengths ({lengths}), which cannot be "
            "compared. Correct the modules of one.",
            param=f"{routes.file}:structure",
        )
    named = {name: replace(spec, route=name) for name, spec in specs.items()}
    found = RoutesSpec(routes.default, named)
    return replace(named[found.first], routes=found)
