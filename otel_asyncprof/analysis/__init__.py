"""What traces and profiles say together: pure functions over recordings."""
