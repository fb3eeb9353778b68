"""askwise inside other libraries; each module needs the extra of the same name."""
