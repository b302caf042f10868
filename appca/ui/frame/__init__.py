"""What surrounds every page: state from the address, errors, status, style."""
