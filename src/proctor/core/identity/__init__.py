"""The identity of callables: a digest of the code, constants and files that they reach."""

from proctor.core.identity.contents import find_address, get_callable_name
from proctor.core.identity.walk import SCHEME, Identity, compute_digest, compute_identity, have_different_schemes

__all__ = [
    "SCHEME",
    "Identity",
    "find_address",
    "compute_identity",
    "compute_digest",
    "have_different_schemes",
    "get_callable_name",
]
