"""All-reduce through reducers: each worker sends a gradient once and gets the sum back."""
