"""Files of a run: what stands in its folder, written and read by whoever has to do with it."""
