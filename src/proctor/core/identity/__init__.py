"""The identity of callables: a digest of the code, constants and files that they reach."""

from proctor.core.identity.contents import address_in, name_of
from proctor.core.identity.walk import SCHEME, Identity, examine, identity_of, is_other_scheme

__all__ = ["SCHEME", "Identity", "address_in", "examine", "identity_of", "is_other_scheme", "name_of"]
