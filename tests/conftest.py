"""Every test runs with shapes checked at run time and with JAX watching for keys that are used twice."""

import os

# Most of a test's time is compiling; programs that run for milliseconds need no optimising. Set before JAX is imported.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
    ]
).strip()

import jax
from jaxtyping import install_import_hook

install_import_hook("hopplus", "beartype.beartype")
jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_num_cpu_devices", 2)
