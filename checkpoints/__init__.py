"""What survives a restart: formats of machine states, and reading them back; a log folded again on
them, with other settings too, and what is decided then compared.
"""
