"""How the values of each type are ordered, and what a literal means among them."""
