"""Reading shards: tar files of samples, in an order that ranks, workers and restarts agree on."""
