"""The registry in the background: asked in time, told what was seen, and pieces that machines share."""
