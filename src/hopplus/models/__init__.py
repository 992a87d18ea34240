"""What an agent learns: each model is a file of its own with `init`, `apply` and, where it has one, `loss`."""
