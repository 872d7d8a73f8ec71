"""Planners for others: how sound one is, its page on the hub, and its network as an ONNX file."""
