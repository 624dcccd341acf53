"""Built on the other rooms, which never import it: registered by entry points."""
