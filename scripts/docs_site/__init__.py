"""The documentation site: `scripts/build_docs` builds it."""
