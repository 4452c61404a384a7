"""Ray clusters."""
