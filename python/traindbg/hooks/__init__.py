"""One thin hook per framework: finds tensors, names them, hands them to the native session."""
