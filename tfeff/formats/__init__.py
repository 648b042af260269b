"""Any model as a file of a format that takes token ids: SavedModel, LiteRT, ONNX."""
