"""A module for each verb: its function ``run``, or its ``COMMANDS``, says what the options are and what is printed."""
