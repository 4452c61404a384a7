"""The supervisor: starts the ranks of a run on this machine, keeps their log and decides how it
ended."""
