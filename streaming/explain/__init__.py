"""Why a partition is as it is: read from a data folder, beside whoever writes it."""
