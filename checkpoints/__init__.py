"""What survives a restart: formats of machine state, and reading them back."""
