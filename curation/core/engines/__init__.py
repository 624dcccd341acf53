"""Heavy work as pure functions of Arrow tables, run by processes of this machine or by Ray, with equal digests."""
