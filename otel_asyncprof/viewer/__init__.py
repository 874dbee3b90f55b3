"""A local viewer: receives traces and profiles, keeps them, and shows each trace with its stacks."""
