"""Folds a log the way the streaming operator does, with any slot count and any batches."""

from __future__ import annotations

from checkpoints.replay import States, fold_batch, fold_log

__all__ = ["States", "fold_batch", "fold_log"]
