"""Which values can travel, and how."""
