"""One node: the pure machines put together. Dispatch only; both drivers drive exactly this."""
