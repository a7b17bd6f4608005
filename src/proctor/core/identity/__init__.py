"""What distinguishes one callable from another: the code it reaches, its constants and files."""

from proctor.core.identity.examine import examine, identity_of
from proctor.core.identity.names import address_in, name_of
from proctor.core.identity.scheme import SCHEME, Identity, is_other_scheme

__all__ = ["SCHEME", "Identity", "address_in", "examine", "identity_of", "is_other_scheme", "name_of"]
