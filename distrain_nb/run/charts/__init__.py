"""The charts of metrics: lines of so many points, what stands around them, drawings of them."""
