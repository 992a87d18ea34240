"""Every test runs with shapes checked at run time and with JAX watching for keys that are used twice."""

import jax
from jaxtyping import install_import_hook

install_import_hook("hopplus", "beartype.beartype")
jax.config.update("jax_debug_key_reuse", True)
