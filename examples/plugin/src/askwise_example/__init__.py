"""A rule, a kind of parameter, a function, a kernel and a storage, added to askwise from outside."""
