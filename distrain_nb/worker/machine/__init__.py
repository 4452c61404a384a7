"""What the operating system and its devices are asked for."""
