"""The principal: a person or a service with roles, skills, domains and credentials.

Who could do what, and since when, is history like everything else; secrets never enter it.
"""
