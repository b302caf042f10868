"""How things are said to people: errors, refusals, numbers; every part may import it."""
