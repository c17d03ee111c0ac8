"""Whether an estimate can be trusted: one verdict, and the checks that it stands on."""
