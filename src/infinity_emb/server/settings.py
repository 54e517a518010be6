"""What the HTTP application needs to know; a frozen extract of the command's options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.config.choices import RerankDocument, TokenIds

if TYPE_CHECKING:
    from infinity_emb.config.server_args import ServerArgs

MEBIBYTE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class HttpSettings:
    """Options of one ASGI application.

    Attributes:
        url_prefix: Native routes are served under this prefix too (`""` or `/something`).
        proxy_root_path: Path that a proxy in front takes away; used in generated URLs.
        redirect_slash: Where `GET /` sends a browser; empty for a plain health answer.
        permissive_cors: Let any web page call the server.
        api_keys: Keys of which a request must show one; empty lets everyone in.
        operator_keys: Keys that open `/debug` and everything else.
        api_key_file: File with further keys and what each may do; None for none.
        access_log: Write a line for each request.
        public_routes: Groups of routes that stay open even if keys are set: docs, metrics, models, info.
        max_body_bytes: Largest request body, before and after decompression.
        body_timeout_s: Longest wait for the next piece of a body.
        request_timeout_s: Time limit of a request that names none; None is no limit.
        token_ids: Whose vocabulary integer inputs use: OpenAI's or the served model's own.
        rerank_document: Form of `document` in rerank results: by path, always a string, or always an object.
    """

    url_prefix: str = ""
    proxy_root_path: str = ""
    redirect_slash: str = "/docs"
    permissive_cors: bool = False
    api_keys: tuple[str, ...] = ()
    operator_keys: tuple[str, ...] = ()
    api_key_file: str | None = None
    access_log: bool = False
    public_routes: frozenset[str] = frozenset({"docs", "metrics"})
    max_body_bytes: int = 256 * MEBIBYTE_BYTES
    body_timeout_s: float = 60.0
    request_timeout_s: float | None = None
    token_ids: TokenIds = TokenIds.CL100K
    rerank_document: RerankDocument = RerankDocument.AUTO

    @classmethod
    def from_server_args(cls, args: ServerArgs) -> HttpSettings:
        """What of the command's options concerns one application."""
        return cls(
            url_prefix=args.url_prefix,
            proxy_root_path=args.proxy_root_path.rstrip("/"),
            redirect_slash=args.redirect_slash,
            permissive_cors=args.permissive_cors,
            api_keys=args.api_keys,
            operator_keys=args.operator_keys,
            api_key_file=args.api_key_file,
            access_log=args.access_log,
            public_routes=frozenset(str(group) for group in args.public_routes),
            max_body_bytes=args.max_body_bytes,
            request_timeout_s=args.request_timeout_s,
            token_ids=args.token_ids,
            rerank_document=args.rerank_document,
        )
