"""The arguments of each verb. They import neither JAX nor anything else that is slow, since help needs only them."""
