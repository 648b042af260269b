"""Fast versions of the equations in `tfeff.ops`, with gradients of their own."""
