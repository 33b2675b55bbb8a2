"""The language of maps: documents and trees of nodes, and their normal form, pieces with their holders."""
