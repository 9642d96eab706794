"""The model as a service: an HTTP interface, requests decoded together, and a page to look at it."""
