"""Where model files come from: a local folder, a cache, the hub, or the package of the default model.

`resolve` is the one entry; it loads neither web nor model libraries unless a repository has to be fetched.
"""

from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.hub.embedded import EMBEDDED_MODEL_ID
from infinity_emb.models.hub.resolve import resolve
from infinity_emb.models.hub.selection import Wanted
from infinity_emb.models.hub.settings import HubSettings

__all__ = ["EMBEDDED_MODEL_ID", "Checkpoint", "HubSettings", "Wanted", "resolve"]
