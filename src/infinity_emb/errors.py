"""The whole error tree, drawn once; every layer raises these and translates foreign errors where it meets them.

::

    InfinityError
    ├── RequestError                     the caller's input is at fault
    │   ├── InvalidInputError            a value is wrong, missing or of the wrong type
    │   │   ├── DimensionsError          `dimensions` outside 1..native
    │   │   └── TextRouteError           nothing says which of the model's routes a text takes, or there is none such
    │   ├── InputTooLargeError           more items, characters or bytes than allowed
    │   ├── ModelNotFoundError           no model is served under that name
    │   ├── CapabilityError              the model cannot do that task or modality
    │   ├── AuthenticationError          missing or wrong key
    │   └── MediaError                   an image or sound that cannot be fetched or decoded
    ├── UnavailableError                 the server cannot answer now; the same request may work later
    │   ├── OverloadedError              the waiting line is full
    │   ├── NotReadyError                loading, draining or stopped
    │   ├── OutOfMemoryError             an item does not fit into memory, even alone
    │   └── DeadlineExceededError        the caller's or the server's time limit passed
    ├── BackendError                     the model failed on these items
    ├── ConfigurationError               an option or an environment variable is wrong
    ├── MissingExtraError                an optional package is not installed
    └── LoadError                        a model cannot be brought up
        ├── CheckpointError              a file of the repository is missing, broken or not supported
        │   └── NotComputedError         the graphs built here do not compute it; another way may
        ├── HubError                     files cannot be fetched
        │   ├── RepositoryNotFoundError
        │   ├── AccessDeniedError
        │   ├── HubOfflineError
        │   ├── HubNetworkError
        │   └── IntegrityError
        └── StorageError                 disk full, not writable
"""

from __future__ import annotations


class InfinityError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        message: What was wrong, what is allowed and how to fix it, for a person.
        param: Name of the field, option or file at fault, if one is.
    """

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class RequestError(InfinityError):
    """The request cannot be served as it is; sending it again will not help."""


class InvalidInputError(RequestError, ValueError):
    """A value is missing, of the wrong type or out of range."""


class DimensionsError(InvalidInputError):
    """`dimensions` is outside what the model offers."""


class TextRouteError(InvalidInputError):
    """The model computes texts by several routes, and the request names none, or one that it has not."""


class InputTooLargeError(RequestError, ValueError):
    """More items, characters or bytes than the server accepts."""


class ModelNotFoundError(RequestError, LookupError):
    """No served model has this name."""


class CapabilityError(RequestError):
    """The model does not offer this task or modality."""


class AuthenticationError(RequestError):
    """The API key is missing or wrong."""


class MediaError(InvalidInputError):
    """An image or sound cannot be fetched or decoded.

    Args:
        message: See `InfinityError`.
        param: See `InfinityError`.
        item_index: Position of the item in the request.
    """

    def __init__(self, message: str, *, param: str | None = None, item_index: int | None = None) -> None:
        super().__init__(message, param=param)
        self.item_index = item_index


class UnavailableError(InfinityError):
    """The server cannot answer now.

    Args:
        message: See `InfinityError`.
        retry_after_s: After how many whole seconds a retry makes sense, if known.
    """

    def __init__(self, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OverloadedError(UnavailableError):
    """The waiting line is full; nothing of the request was accepted."""


class NotReadyError(UnavailableError):
    """The model is loading, draining or stopped."""


class OutOfMemoryError(UnavailableError):
    """One item does not fit into the memory that is left, even alone.

    Not the caller's fault, and another server or a later try may have the room: clients retry and gateways move on.
    """


class DeadlineExceededError(UnavailableError, TimeoutError):
    """The time limit passed before the work was done; work not yet started was dropped."""


class BackendError(InfinityError, RuntimeError):
    """The model failed on an item.

    Args:
        message: See `InfinityError`.
        item_index: Position of the guilty item in the request, if it is known.
    """

    def __init__(self, message: str, *, item_index: int | None = None) -> None:
        super().__init__(message)
        self.item_index = item_index


class ConfigurationError(InfinityError, ValueError):
    """An option, an environment variable or a configuration file is wrong."""


class MissingExtraError(InfinityError, ImportError):
    """An optional package is not installed; the message holds the line that installs it."""


class LoadError(InfinityError, RuntimeError):
    """A model cannot be brought up."""


class CheckpointError(LoadError, ValueError):
    """A file of the model repository is missing, broken or asks for something not supported.

    `param` names the file, and the field where there is one.
    """


class NotComputedError(CheckpointError):
    """The graphs built here do not compute what the checkpoint asks for; an ONNX file or torch may."""


class HubError(LoadError):
    """Files of a model repository cannot be fetched."""


class RepositoryNotFoundError(HubError):
    """The hub knows no such repository or revision (404)."""


class AccessDeniedError(HubError):
    """The hub refuses access (401 or 403)."""


class HubOfflineError(HubError):
    """Offline mode is on and the files are not in the local cache."""


class HubNetworkError(HubError):
    """The hub cannot be reached."""


class IntegrityError(HubError):
    """Downloaded bytes are not the expected ones."""


class StorageError(LoadError, OSError):
    """The disk is full or not writable."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        LoadError.__init__(self, message, param=param)

    def __str__(self) -> str:
        """OSError would print a tuple."""
        return self.message
