"""What a saved notebook keeps of runs and studies: HTML without scripts, and text."""
