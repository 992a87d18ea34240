"""How well players do, and whether a difference means anything."""
