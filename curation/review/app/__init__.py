"""Review by eye in the FiftyOne App: a dataset, a plugin that records verdicts, and the log behind it."""
