"""What OTLP profiles are turned into: pure functions over ProfilesData messages, without files and without clocks."""
