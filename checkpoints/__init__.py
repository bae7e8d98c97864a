"""What survives a restart: state formats, their versions, layout and restore."""
