"""AI Platform Training, which has ended: its layouts and studies."""
