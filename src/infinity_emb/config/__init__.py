"""What an operator may set: options declared once, where their values come from, and the log."""
