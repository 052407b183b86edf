"""The office's side of Workmate: the one place where a task's history is committed."""
