"""A module for each verb: its function ``run``, or its ``COMMANDS``, declares the options and the output."""
