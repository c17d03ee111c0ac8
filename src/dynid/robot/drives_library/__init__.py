"""Drives that were identified from recordings, one TOML file each."""
