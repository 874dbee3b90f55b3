"""What OTLP profiles are turned into."""
