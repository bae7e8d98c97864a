"""The commands of `helmstream`, one module each; `streaming.cli` puts them together."""
