"""The server of `askwise serve`: the participants' page, the experimenter's page and the HTTP API.

Where things are, from the bottom up:

- `settings`: what the server was started with; `memory`: less of it for many threads; `serverfile`: keys,
  links and studies made here, in one file;
- `access`: who may do what (the owner's token and cookie, participants' links), as FastAPI dependencies;
- `studies`: the registry of studies, by their id in addresses; `changes`: news of their records, for pages;
- `presenting`: what participants see of an option, made from its values and kept in `media`; `sitting`: what
  a participant does in a study, from the first question to the completion code (`completion`);
- `guards`: ASGI middleware for hosts, origins, headers, sizes and rates; `problems`: errors as JSON or pages;
- `api`: routes under ``/api/v1``, one file for each group, with the JSON of all of them in `api.models`;
- `pages`: routes that answer with HTML, with `templates/` (Jinja2, sandboxed, escaped) and `static/` (scripts
  and styles; nothing inline, nothing from elsewhere: the Content-Security-Policy forbids both);
- `desk`: results for the experimenter's pages, computed once and after participants' questions; `charts`,
  `overview`, `quality`, `figures`: these results; `lens`: for whom and in which context; `answers`: amend and
  void; `forms`: a new study from a form;
- `app` puts all of this together; `server` binds the port, prints the link and runs it.

A new page is a file in `pages` with a `router`, listed in `pages/__init__.py`, its template and its
script.  It gets the registry by ``studies(request)``, and declares who may see it: ``Owner`` or ``Person``;
a form of the owner's is read by ``OwnersForm``, which checks its hidden field ``csrf``.  Routes only
translate: what they do is a method of `Study` or of a module below.
"""
