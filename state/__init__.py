"""Pure state machines of the control plane: events in, decisions out, nothing else."""
