"""The documents: their links, their command lines, and the site that is made of them."""
