"""The command line: one thin command per verb. `main` in `hopplus.cli.main` runs a command line."""
