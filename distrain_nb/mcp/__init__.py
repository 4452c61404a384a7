"""Runs as tools for agents: `python -m distrain_nb.mcp`. See `docs/agents.md`."""
